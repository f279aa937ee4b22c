// Bundles a fuzz target written in TypeScript, and has the bundle count which of its branches run.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { rolldown } from 'rolldown';
import { parseAst } from 'rolldown/parseAst';

const root = resolve(import.meta.dirname, '../..');

/** The nodes of a syntax tree whose execution is counted, and where the counting is inserted. */
function places(tree) {
  const found = [];
  const statement = (node) => {
    if (node?.type === 'BlockStatement') found.push({ at: node.start + 1, kind: 'block' });
    else if (node) found.push({ at: node.start, end: node.end, kind: 'statement' });
  };
  const expression = (node) => found.push({ at: node.start, end: node.end, kind: 'expression' });
  const literals = new Set();
  const visit = (node) => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (typeof node?.type !== 'string') return undefined;
    if (/Function/.test(node.type) && node.body?.type === 'BlockStatement') statement(node.body);
    else if (node.type === 'ArrowFunctionExpression') expression(node.body);
    else if (node.type === 'IfStatement') [node.consequent, node.alternate].forEach(statement);
    else if (/^(For|While|DoWhile)/.test(node.type)) statement(node.body);
    else if (node.type === 'CatchClause') statement(node.body);
    else if (node.type === 'LogicalExpression') expression(node.right);
    else if (node.type === 'ConditionalExpression') {
      [node.consequent, node.alternate].forEach(expression);
    } else if (node.type === 'SwitchCase' && node.consequent.length > 0) {
      found.push({ at: node.consequent[0].start, kind: 'block' });
    } else if (node.type === 'Literal' && ['string', 'number'].includes(typeof node.value)) {
      literals.add(node.value);
    } else if (node.type === 'Property' && node.key.type === 'Identifier') {
      literals.add(node.key.name);
    }
    for (const value of Object.values(node)) if (typeof value === 'object') visit(value);
    return undefined;
  };
  visit(tree);
  return { found, literals: [...literals] };
}

/** @returns {{ code: string, branches: number, literals: (string | number)[] }} */
export function instrument(code) {
  const { found, literals } = places(parseAst(code));
  const insertions = [];
  found.forEach(({ at, end, kind }, i) => {
    if (kind === 'block') insertions.push([at, `branchCounters[${i}]++;`, 0]);
    else {
      const [before, after] =
        kind === 'expression'
          ? [`(branchCounters[${i}]++,(`, '))']
          : [`{branchCounters[${i}]++;`, '}'];
      // At one position, an outer node opens before an inner one, and closes after it.
      insertions.push([at, before, -end], [end, after, -at]);
    }
  });
  insertions.sort(([a, , x], [b, , y]) => a - b || x - y);
  let out = 'const branchCounters = globalThis.branchCounters;\n';
  let from = 0;
  for (const [at, text] of insertions) {
    out += code.slice(from, at) + text;
    from = at;
  }
  return { code: out + code.slice(from), branches: found.length, literals };
}

/** Writes the instrumented bundle of a target. @returns its path, and what the loop must know */
export async function bundleTarget(name, folder) {
  const build = await rolldown({
    input: join(root, 'test/fuzz/javascript', `${name}.ts`),
    platform: 'node',
    external: [/^@nats-io\//],
    transform: { target: 'node20.19' },
  });
  const { output } = await build.generate({ format: 'esm', codeSplitting: false });
  await build.close();
  const { code, branches, literals } = instrument(output[0].code);
  const path = join(folder, `${name}.mjs`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, code);
  return { path, branches, literals };
}
