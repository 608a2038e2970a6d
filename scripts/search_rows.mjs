// The rows of the search index as the Worker writes them (`src/store/search.rs`; tests/e2e/search.test.mjs compares).

const TEXT_MAX_CHARS = 50_000;

// D1 takes 100 kB for a statement; a character may have twelve bytes with its spaces.
const PART_MAX_CHARS = 6000;

const UNSPACED =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\u{20000}-\u{323af}]/gu;

/** What can be found of the main database, `limit` messages after a row. */
export const messagesAfter = (row, limit) => `
SELECT m.rowid AS row, m.resource_id, m.thread_id, m.id, m.body || coalesce((
  SELECT group_concat(text, '') FROM (
    SELECT text FROM message_pieces p
    WHERE p.thread_id = m.thread_id AND p.message_id = m.id AND p.piece <= m.more_pieces ORDER BY p.piece
  )), '') AS body
FROM messages m
WHERE m.rowid > ${row} AND m.superseded_by IS NULL AND m.role IN ('user', 'assistant')
ORDER BY m.rowid LIMIT ${limit}`;

/** Statements that put such messages into the index. */
export function statements(messages) {
  return messages.flatMap((message) => {
    const text = textOf(JSON.parse(message.body));
    if (text.trim() === "") return [];
    const spaced = [...text].slice(0, TEXT_MAX_CHARS).join("").replace(UNSPACED, "\u200b$&\u200b");
    const [first, ...rest] = parts([...spaced]);
    const values = [keys(message), first, message.resource_id, message.thread_id, message.id].map(quoted).join(", ");
    return [
      `INSERT INTO message_text (keys, text, resource_id, thread_id, message_id) VALUES (${values});`,
      ...rest.map(
        (part) =>
          `UPDATE message_text SET text = text || ${quoted(part)} WHERE rowid = (SELECT max(rowid) FROM message_text);`,
      ),
    ];
  });
}

function textOf({ content }) {
  if (!Array.isArray(content)) return content ?? "";
  return content.filter(({ type }) => type === "text").map(({ text }) => text).join("\n\n");
}

function keys({ resource_id, thread_id, id }) {
  const hex = (text) => Buffer.from(text).toString("hex");
  return `o${hex(resource_id)} t${hex(thread_id)} m${hex(thread_id)}x${hex(id)}`;
}

function parts(characters) {
  const count = Math.ceil(characters.length / PART_MAX_CHARS);
  return Array.from({ length: count }, (_, index) =>
    characters.slice(index * PART_MAX_CHARS, (index + 1) * PART_MAX_CHARS).join(""),
  );
}

const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
