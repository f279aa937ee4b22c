// What there is in lib/, counted:
//   house.mjs [--root FOLDER]   prints the table
// Lines have no blanks and no comments. A foreign write is an assignment to a field of a class from
// outside the class's file: the state of an object has one owner.
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import {
  isAsExpression,
  isBinaryExpression,
  isClassDeclaration,
  isDeleteExpression,
  isGetAccessorDeclaration,
  isMethodDeclaration,
  isPostfixUnaryExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isSetAccessorDeclaration,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';

/** Of the public classes only these may have more than 25 methods: their users need each. */
const PUBLIC_CLASSES = new Set(['Coordinator', 'BoundedQueue', 'ClusterCoordinator']);
const LIMIT_OF_METHODS = 25;

const isWriting = (kind) => kind >= SyntaxKind.FirstAssignment && kind <= SyntaxKind.LastAssignment;

const isMethod = (member) =>
  isMethodDeclaration(member) ||
  isGetAccessorDeclaration(member) ||
  isSetAccessorDeclaration(member);

/** The expression that a node writes to; undefined if it writes nothing. */
function writtenBy(node) {
  if (isBinaryExpression(node) && isWriting(node.operatorToken.kind)) return node.left;
  const isStep =
    (isPrefixUnaryExpression(node) || isPostfixUnaryExpression(node)) &&
    (node.operator === SyntaxKind.PlusPlusToken || node.operator === SyntaxKind.MinusMinusToken);
  if (isStep) return node.operand;
  if (isDeleteExpression(node)) return node.expression;
  return undefined;
}

/** The lines of a text that have a token: not blank, and more than a comment. */
function linesOfCode(text) {
  const ends = [];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) ends.push(at);
  const isComment = new Uint8Array(text.length);
  const strings =
    /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\/[^\n]*|\/\*[^]*?\*\//g;
  for (const { 0: found, index } of text.matchAll(strings)) {
    if (found.startsWith('/')) isComment.fill(1, index, index + found.length);
  }
  let from = 0;
  let count = 0;
  for (const end of [...ends, text.length]) {
    for (let at = from; at < end; at++) {
      if (isComment[at] === 0 && text.charCodeAt(at) > 32) {
        count++;
        break;
      }
    }
    from = end + 1;
  }
  return count;
}

/**
 * What lib/ has: files, lines, casts, classes with many methods, and foreign writes.
 *
 * @param {string} root a checkout of the project
 * @returns {import('./house.mjs').House}
 */
export function readHouse(root = resolve(import.meta.dirname, '..')) {
  const api = new API({ cwd: root });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] });
    const [project] = snapshot.getProjects();
    const { program, checker } = project;
    const names = program.getSourceFileNames().filter((name) => name.startsWith(`${root}/lib/`));
    const house = { files: names.length, lines: 0, casts: 0, large: [], foreignWrites: [] };
    for (const name of names) {
      const source = program.getSourceFile(name);
      const file = relative(root, name);
      house.lines += linesOfCode(source.text);
      const writes = [];
      const visit = (node) => {
        if (isAsExpression(node) && node.type.getText(source) !== 'const') house.casts++;
        if (isClassDeclaration(node)) {
          const methods = node.members.filter(isMethod).length;
          const title = node.name?.text ?? '';
          if (methods > LIMIT_OF_METHODS && !PUBLIC_CLASSES.has(title)) {
            house.large.push({ file, name: title, methods });
          }
        }
        const target = writtenBy(node);
        if (target !== undefined && isPropertyAccessExpression(target)) writes.push(target);
        node.forEachChild(visit);
      };
      source.forEachChild(visit);
      const symbols = checker.getSymbolAtLocation(writes.map((target) => target.name));
      for (const [index, target] of writes.entries()) {
        const declaration = symbols[index]?.declarations?.[0]?.resolve(project);
        const owner = declaration?.parent;
        if (owner === undefined || !isClassDeclaration(owner)) continue;
        const home = relative(root, declaration.getSourceFile().fileName);
        if (home === file || !home.startsWith('lib/')) continue;
        const line = source.text.slice(0, target.getStart(source)).split('\n').length;
        const field = `${owner.name?.text}.${target.name.text}`;
        house.foreignWrites.push({ file, line, field, home });
      }
    }
    return house;
  } finally {
    api.close();
  }
}

/** Why a foreign write is none to make. */
export const objectionTo = ({ file, line, field, home }) =>
  `${file}:${line} writes ${field}, whose owner is ${home}. A state is written by its owner alone: give the owner a method that says what happened.`;

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({ options: { root: { type: 'string' } } });
  const house = readHouse(values.root === undefined ? undefined : resolve(values.root));
  process.stdout.write(
    `${[
      `files in lib                                  ${house.files}`,
      `lines of code in lib                          ${house.lines}`,
      `casts (as)                                    ${house.casts}`,
      `classes with more than ${LIMIT_OF_METHODS} methods, not public  ${house.large.length}`,
      ...house.large.map(({ file, name, methods }) => `  ${name} (${methods}) ${file}`),
      `writes to fields of a class from other files  ${house.foreignWrites.length}`,
      ...house.foreignWrites.map(({ file, line, field }) => `  ${file}:${line} ${field}`),
    ].join('\n')}\n`,
  );
}
