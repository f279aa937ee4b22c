// A child process that ends only by SIGKILL, or when the test that started it is long over.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
process.on('disconnect', () => {});
process.on('message', () => process.send('yes'));
process.send('ready');
setTimeout(() => process.exit(), 30_000);
