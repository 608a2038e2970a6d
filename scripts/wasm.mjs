// What is in a wasm file. https://webassembly.github.io/spec/core/binary/modules.html

const CUSTOM = 0;
const IMPORT = 2;
const EXPORT = 7;
const CODE = 10;
const DATA = 11;

/** The part of the section `name` with those of functions. */
const FUNCTION_NAMES = 1;

/** Reads numbers, texts and bytes one after the other. */
class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  number() {
    let [value, factor, byte] = [0, 1, 0];
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte & 128);
    return value;
  }

  take(length) {
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  text() {
    return this.take(this.number()).toString("utf8");
  }

  get isAtEnd() {
    return this.at >= this.bytes.length;
  }
}

function sections(file) {
  const reader = new Reader(file, 8);
  const found = [];
  while (!reader.isAtEnd) {
    const start = reader.at;
    const [id] = reader.take(1);
    const content = reader.take(reader.number());
    found.push({ id, content, whole: file.subarray(start, reader.at) });
  }
  return found;
}

function without(file, isUnwanted) {
  const wanted = sections(file).filter((section) => !isUnwanted(section));
  return Buffer.concat([file.subarray(0, 8), ...wanted.map(({ whole }) => whole)]);
}

const isCustom = ({ id }) => id === CUSTOM;
const isNames = (section) => isCustom(section) && new Reader(section.content).text() === "name";

/** The file without its names and whatever else no engine needs. */
export const stripped = (file) => without(file, isCustom);

/** The file with these names of its functions, and no others. */
export function renamed(file, names) {
  const { importCount } = contents(file);
  const entries = names.flatMap((name, index) => [number(importCount + index), text(name)]);
  const list = Buffer.concat([number(names.length), ...entries]);
  const content = Buffer.concat([text("name"), Buffer.of(FUNCTION_NAMES), number(list.length), list]);
  return Buffer.concat([without(file, isNames), Buffer.of(CUSTOM), number(content.length), content]);
}

function number(value) {
  const bytes = [];
  for (; value > 127; value >>>= 7) bytes.push((value & 127) | 128);
  return Buffer.of(...bytes, value);
}

function text(value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length), bytes]);
}

/** The functions of a file, `[{ name, bytes }]`, how many it imports, and its data. The name is empty if it keeps none. */
export function contents(file) {
  const names = new Map();
  const bodies = [];
  let [importCount, data] = [0, Buffer.alloc(0)];
  for (const { id, content } of sections(file)) {
    const reader = new Reader(content);
    if (id === CUSTOM && reader.text() === "name") readNames(reader, names);
    if (id === IMPORT) importCount = imports(content).filter(({ kind }) => kind === FUNCTION).length;
    if (id === CODE) for (let left = reader.number(); left > 0; left--) bodies.push(reader.take(reader.number()));
    if (id === DATA) data = content;
  }
  const functions = bodies.map((bytes, index) => ({ name: bare(names.get(importCount + index) ?? ""), bytes }));
  return { importCount, functions, data };
}

/** A name without the hashes of its crates. */
const bare = (name) => name.replace(/\[[0-9a-f]+\]/g, "");

function readNames(reader, names) {
  while (!reader.isAtEnd) {
    const [kind] = reader.take(1);
    const part = new Reader(reader.take(reader.number()));
    const isOfFunctions = kind === FUNCTION_NAMES;
    for (let left = isOfFunctions ? part.number() : 0; left > 0; left--) names.set(part.number(), part.text());
  }
}

const FUNCTION = 0;

/** The entries of the section of imports, `[{ module, name, kind, type }]`, the type in bytes that begin with the kind. */
function imports(content) {
  const reader = new Reader(content);
  return Array.from({ length: reader.number() }, () => {
    const [module, name, start] = [reader.text(), reader.text(), reader.at];
    const [kind] = reader.take(1);
    // A function, a table, a memory, a global, an exception's tag.
    if (kind === 1 || kind === 3) reader.take(1);
    if ((kind === 1 || kind === 2) && reader.number() & 1) reader.number();
    if (kind === 3 || kind === 4) reader.take(1);
    if (kind !== 3) reader.number();
    return { module, name, kind, type: content.subarray(start, reader.at) };
  });
}

/** The entries of the section of exports, `[{ name, target }]`, the target in bytes. */
function exports(content) {
  const reader = new Reader(content);
  return Array.from({ length: reader.number() }, () => {
    const [name, start] = [reader.text(), reader.at];
    reader.take(1);
    reader.number();
    return { name, target: content.subarray(start, reader.at) };
  });
}

const partOf = (file, wanted) => sections(file).find(({ id }) => id === wanted)?.content ?? Buffer.of(0);

/** What all is imported from; wasm-bindgen knows one module. */
export const importModule = (file) => imports(partOf(file, IMPORT))[0]?.module;
export const importNames = (file) => imports(partOf(file, IMPORT)).map(({ name }) => name);
export const exportNames = (file) => exports(partOf(file, EXPORT)).map(({ name }) => name);

/** The file that exports only these. */
export function exported(file, names) {
  return withList(file, EXPORT, (content) => exports(content).filter(({ name }) => names.includes(name)).map(({ name, target }) => [text(name), target]));
}

/** The file with new names of all it imports, from one module, and exports, by the old ones. */
export function renamedBorders(file, module, newImports, newExports) {
  const imported = withList(file, IMPORT, (content) => imports(content).map(({ name, type }) => [text(module), text(newImports.get(name)), type]));
  return withList(imported, EXPORT, (content) => exports(content).map(({ name, target }) => [text(newExports.get(name)), target]));
}

/** The file with other entries, lists of bytes, in a section that is a list. */
function withList(file, wanted, entriesOf) {
  const all = sections(file).map(({ id, content, whole }) => (id === wanted ? list(id, entriesOf(content)) : whole));
  return Buffer.concat([file.subarray(0, 8), ...all]);
}

function list(id, entries) {
  const content = Buffer.concat([number(entries.length), ...entries.flat()]);
  return Buffer.concat([Buffer.of(id), number(content.length), content]);
}
