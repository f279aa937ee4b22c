// Deletes from the declarations in dist/ what no entry point of the package reaches: nobody can
// import it. A third of their bytes goes.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

/** The names in `node`, and the modules of its `import('…')` types. */
function mentioned(node, names = new Set(), modules = new Set()) {
  if (typeof node !== 'object' || node === null) return { names, modules };
  if (node.type === 'Identifier') names.add(node.name);
  if (node.type === 'TSImportType') modules.add(node.source.value);
  for (const value of Object.values(node)) mentioned(value, names, modules);
  return { names, modules };
}

const declares = (statement) => {
  const node = statement.declaration ?? statement;
  return (node.declarations ?? [node]).flatMap(({ id }) => (id ? [id.name] : []));
};

/** One file: its statements, and which of them, and of their specifiers, are kept. */
function parse(file) {
  const text = readFileSync(file, 'utf8');
  const { body } = parseAst(text, { lang: 'dts', astType: 'ts' }, file);
  return { file, text, body, kept: new Set() };
}

function reachable(entries) {
  const files = new Map();
  const open = (file) => {
    if (!files.has(file)) files.set(file, parse(file));
    return files.get(file);
  };
  const follow = (from, specifier, name) => {
    if (!specifier.startsWith('.')) return;
    const file = normalize(join(dirname(from.file), specifier.replace(/\.[jt]s$/, '.d.ts')));
    keepExport(open(file), name);
  };
  /** Keeps what `name` means inside `file`. */
  function keepName(file, name) {
    for (const statement of file.body) {
      if (declares(statement).includes(name)) keep(file, statement);
      if (statement.type !== 'ImportDeclaration') continue;
      for (const each of statement.specifiers) {
        if (each.local.name !== name || file.kept.has(each)) continue;
        file.kept.add(statement).add(each);
        follow(file, statement.source.value, each.imported?.name);
      }
    }
  }
  function keep(file, statement) {
    if (file.kept.has(statement)) return;
    file.kept.add(statement);
    const { names, modules } = mentioned(statement);
    for (const name of names) keepName(file, name);
    for (const specifier of modules) follow(file, specifier);
  }
  /** Keeps what `file` exports as `name`; without a name all of it. */
  function keepExport(file, name) {
    for (const statement of file.body) {
      const { type, source, specifiers = [] } = statement;
      if (type === 'ExportAllDeclaration') {
        if (file.kept.has(`${name} of ${source.value}`)) continue;
        file.kept.add(statement).add(`${name} of ${source.value}`);
        follow(file, source.value, name);
      } else if (type === 'ExportNamedDeclaration') {
        if (statement.declaration && (!name || declares(statement).includes(name)))
          keep(file, statement);
        for (const each of specifiers) {
          if ((name && each.exported.name !== name) || file.kept.has(each)) continue;
          file.kept.add(statement).add(each);
          if (source) follow(file, source.value, each.local.name);
          else keepName(file, each.local.name);
        }
      } else if (type !== 'ImportDeclaration' && declares(statement).length === 0)
        keep(file, statement); // of a kind that this program does not know
    }
  }
  for (const entry of entries) keepExport(open(normalize(entry)));
  return files;
}

/** The statement with the comments before it, and without the specifiers that are not kept. */
function printed({ text, kept }, statement, from) {
  const { specifiers = [], start, end } = statement;
  const gone = specifiers.filter((each) => !kept.has(each));
  if (gone.length === 0) return text.slice(from, end);
  const rest = specifiers.filter((each) => kept.has(each));
  const list = rest.map((each) => text.slice(each.start, each.end)).join(', ');
  const code = text.slice(start, end).replace(/\{[^}]*\}/, `{ ${list} }`);
  return text.slice(from, start) + code;
}

/** `manifest`: package.json. */
export function pruneDeclarations(root, manifest) {
  const entries = Object.values(manifest.exports)
    .map(({ types }) => types)
    .filter((types) => types?.startsWith('./dist/'));
  const files = reachable(entries.map((types) => join(root, types)));
  for (const name of readdirSync(join(root, 'dist'), { recursive: true })) {
    if (!name.endsWith('.d.ts')) continue;
    const path = join(root, 'dist', name);
    const file = files.get(path);
    if (!file) {
      rmSync(path);
      continue;
    }
    let code = '';
    let from = 0;
    for (const statement of file.body) {
      const isMark =
        statement.type === 'ExportNamedDeclaration' && statement.specifiers.length === 0;
      if (file.kept.has(statement) || (isMark && !statement.declaration))
        code += printed(file, statement, from); // `export {}` makes a module of the file
      from = statement.end;
    }
    writeFileSync(path, `${code.trim()}\n`);
  }
}
