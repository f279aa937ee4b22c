// Sends bytes to a C thread until it reads one on which it fails.
import { createRequire } from 'node:module';
import { Coordinator } from 'allstop';

const addon = createRequire(import.meta.url)('./build/Release/reader.node');

const coord = new Coordinator({ name: 'native-c' });
coord.stopOnSignals();
const reader = addon.start(coord, 'reader');
addon.write(reader, Buffer.from('some work, and then!'));
try {
  await coord.join();
} catch (error) {
  console.log(`${error.name} ${error.code}: ${error.message}`);
}
console.log(`${addon.served(reader)} bytes were served`);
console.log(String(coord.explain()));
