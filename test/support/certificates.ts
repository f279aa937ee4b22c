/** Makes certificates with openssl, signed by an authority made for the test, in a new folder. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Certificates {
  readonly #folder = mkdtempSync(join(tmpdir(), 'allstop-tls-'));

  constructor() {
    this.#openssl('req -x509 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test');
    this.make('server', 'IP:127.0.0.1,DNS:localhost');
  }

  /** Makes a certificate for `names`, which are in the form of `subjectAltName`. */
  make(name: string, names: string, days = 2): void {
    writeFileSync(join(this.#folder, `${name}.ext`), `subjectAltName=${names}\n`);
    this.#openssl(`req -nodes -keyout ${name}.key -out ${name}.csr -subj /CN=${name}`);
    const by = '-CA ca.pem -CAkey ca.key -CAcreateserial';
    this.#openssl(
      `x509 -req -in ${name}.csr ${by} -days ${days} -out ${name}.pem -extfile ${name}.ext`,
    );
  }

  path(file: string): string {
    return join(this.#folder, file);
  }

  /** The `tls` block of a nats-server configuration; `more` is added to that block. */
  config(name = 'server', more = ''): string {
    const [cert, key] = [this.path(`${name}.pem`), this.path(`${name}.key`)];
    return `tls { cert_file: "${cert}", key_file: "${key}", ${more} }`;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #openssl(args: string): void {
    const [command, ...rest] = args.split(' ') as [string, ...string[]];
    const kind =
      command === 'req' ? ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'] : [];
    execFileSync('openssl', [command, ...kind, ...rest], { cwd: this.#folder, stdio: 'pipe' });
  }
}
