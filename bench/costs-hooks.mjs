/** Leaves a ledger out of what is imported: ALLSTOP_WITHOUT is the start of a method, which then does nothing. */

const method = process.env.ALLSTOP_WITHOUT;

export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.includes('/dist/')) return loaded;
  const source = String(loaded.source);
  if (!source.includes(method)) return loaded;
  return { ...loaded, source: source.replaceAll(method, `${method} return;`) };
}
