// For `allstop check-addon`: a worker reads from a serial port, which here is a pseudo-terminal whose
// other end sends ten bytes every 0.1 s.
import { spawn } from 'node:child_process';

const OTHER_END = `
import os, pty, time
ours, theirs = pty.openpty()
print(os.ttyname(theirs), flush=True)
for i in range(20):
  os.write(ours, b'x' * 10)
  time.sleep(.1)
`;

export default async ({ LinuxBinding }) => {
  const { stdout } = spawn('python3', ['-c', OTHER_END]);
  const path = await new Promise((resolve) => {
    stdout.once('data', (line) => resolve(String(line).trim()));
  });
  const port = await LinuxBinding.open({ path, baudRate: 9600 });
  const read = () => port.read(Buffer.alloc(10), 0, 10);
  await read();
  const readOn = async () => {
    for (;;) await read();
  };
  readOn().catch(() => {}); // goes on when this function returns
};
