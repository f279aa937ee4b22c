/** All options of all commands: how each is written, and what it means, with its default. */

export type OptionText = {
  /** What is written after the option; undefined: the option has no value. */
  value?: string;
  short?: string;
  text: string;
};

export type Flag = keyof typeof optionTexts;

export const optionTexts = {
  relative: {
    text: 'prints the path relative to the working directory (default: an absolute path)',
  },
  module: {
    value: 'FILE',
    text: "the module whose exported functions are run; the same file, byte for byte, as the coordinator's",
  },
  servers: {
    value: 'URL,URL',
    text: 'the NATS servers: nats://host:4222, tls://host:4222 or host:4222 (default port: 4222)',
  },
  cluster: { value: 'NAME', text: 'the name of the cluster, as its coordinator has it' },
  domain: {
    value: 'NAME',
    text: "the JetStream domain that the coordinator's `jetstream.domain` names (default: that of the account)",
  },
  job: {
    value: 'worker|ps',
    text: 'the job of this process: a worker runs functions; a ps (parameter server) runs none, but its loss stops the cluster (default: worker)',
  },
  task: { value: 'N', text: 'the index of the task in that job (default: any free task)' },
  spec: {
    value: 'FILE',
    text: 'a ClusterSpec as JSON; the coordinator refuses this worker if its own ClusterSpec is different (default: none is compared)',
  },
  definition: {
    value: 'TEXT',
    text: "the version of the program, such as a git hash; compared with the coordinator's `definition` instead of the module files (default: the module files are compared)",
  },
  slots: {
    value: 'N',
    text: 'the number of worker threads, and so how many functions run at the same time (default: the number of processors)',
  },
  recycle: {
    value: 'TEXT',
    text: 'when a thread is replaced, between functions: tasks=N, after N of them; heapMb=N, after one that leaves its heap larger; or both, joined by a comma (default: never)',
  },
  setup: {
    value: 'NAME',
    text: "an export that each thread calls before it takes functions (default: the coordinator's `setup`)",
  },
  teardown: {
    value: 'NAME',
    text: "an export that each thread calls after its last function (default: the coordinator's `teardown`)",
  },
  resources: {
    value: 'LIST',
    text: 'what this worker has, for functions that need it: gpu=1,licence=2 (default: nothing)',
  },
  health: {
    value: 'PORT',
    text: 'serves GET /livez, /readyz and /metrics (Prometheus) at this port (default: none)',
  },
  output: {
    value: 'PAGE',
    short: 'o',
    text: 'the file to write; one that exists is replaced',
  },
  exercise: { value: 'SCRIPT', text: 'the ES module that uses the addon' },
  template: { value: 'cpp|c|cmake|rust', text: 'what the addon is written in (default: cpp)' },
  runtimes: {
    value: 'LIST',
    text: 'the runtimes to try: names on the PATH, or paths, separated by commas: node,bun,/opt/node-22/bin/node (default: the one that runs this command, and node, bun and deno of the PATH)',
  },
  timeout: {
    value: 'SECONDS',
    text: 'a case that takes longer has hung; up to 3600 (default: 30)',
  },
  verbose: {
    text: 'also lists what is peculiar to this runtime, and what to do about it (default: only how many notes there are)',
  },
  json: {
    text: 'prints JSON: the result as one line, or a line for each event (default: text)',
  },
  help: { short: 'h', text: 'prints this text; after a command, the help of that command' },
  version: { short: 'v', text: 'prints the version of the package' },
};
