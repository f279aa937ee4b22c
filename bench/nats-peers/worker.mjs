/** node worker.mjs bare|bullmq ADDRESS: a worker process of that peer. */

const [, , peer, address] = process.argv;
const { work } = await import(`./${peer}.mjs`);
await work(address);
process.stdout.write('ready\n');
