// The same with Piscina and close-with-grace, which handles the signals by default.
import closeWithGrace from 'close-with-grace';
import Fastify from 'fastify';
import { Piscina } from 'piscina';

const pool = new Piscina({ filename: new URL('tasks.mjs', import.meta.url).href });
const app = Fastify();
app.get('/', () => pool.run(undefined, { name: 'answer' }));
closeWithGrace({ delay: 10_000 }, async () => {
  await app.close();
  await pool.close();
});
console.log(await app.listen({ port: 0 }));
