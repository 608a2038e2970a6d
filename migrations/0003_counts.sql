-- How many messages of a thread are to be seen, and how many rows of the mastra form they are, so that a page of a long
-- thread does not count it all. Null for threads of the previous version until their next run; those are counted as before.
--
-- Nothing is counted down by deletions: messages go only with their thread.

ALTER TABLE threads ADD COLUMN message_count INTEGER;
ALTER TABLE threads ADD COLUMN row_count INTEGER;

-- A message among its neighbours of the roles that make rows: a user message is a row, and so is what the assistant says
-- up to the next one.
CREATE VIEW message_rows AS
SELECT thread_id, id, CASE role
    WHEN 'user' THEN 1 + (role_before = 'assistant' AND role_after = 'assistant')
    WHEN 'assistant' THEN role_before = 'user' AND role_after = 'user'
    ELSE 0
  END AS row_count
FROM (
  SELECT m.thread_id, m.id, m.role,
    coalesce((
      SELECT b.role FROM messages b
      WHERE b.resource_id = m.resource_id AND b.thread_id = m.thread_id AND b.superseded_by IS NULL
        AND b.role IN ('user', 'assistant') AND b.place < m.place
      ORDER BY b.place DESC LIMIT 1
    ), 'user') AS role_before,
    coalesce((
      SELECT a.role FROM messages a
      WHERE a.resource_id = m.resource_id AND a.thread_id = m.thread_id AND a.superseded_by IS NULL
        AND a.role IN ('user', 'assistant') AND a.place > m.place
      ORDER BY a.place LIMIT 1
    ), 'user') AS role_after
  FROM messages m
);

CREATE TRIGGER messages_shown_first AFTER INSERT ON messages WHEN NEW.superseded_by IS NULL
BEGIN
  UPDATE threads SET
    message_count = message_count + 1,
    row_count = row_count + (SELECT r.row_count FROM message_rows r WHERE r.thread_id = NEW.thread_id AND r.id = NEW.id)
  WHERE id = NEW.thread_id;
END;

CREATE TRIGGER messages_shown_again AFTER UPDATE OF superseded_by ON messages
WHEN OLD.superseded_by IS NOT NULL AND NEW.superseded_by IS NULL
BEGIN
  UPDATE threads SET
    message_count = message_count + 1,
    row_count = row_count + (SELECT r.row_count FROM message_rows r WHERE r.thread_id = NEW.thread_id AND r.id = NEW.id)
  WHERE id = NEW.thread_id;
END;

CREATE TRIGGER messages_hidden AFTER UPDATE OF superseded_by ON messages
WHEN OLD.superseded_by IS NULL AND NEW.superseded_by IS NOT NULL
BEGIN
  UPDATE threads SET
    message_count = message_count - 1,
    row_count = row_count - (SELECT r.row_count FROM message_rows r WHERE r.thread_id = NEW.thread_id AND r.id = NEW.id)
  WHERE id = NEW.thread_id;
END;
