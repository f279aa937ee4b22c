/** `allstop completion SHELL` prints a script by which a shell completes the command line. */

import { type Command, UsageError } from './base/command.ts';
import { type Flag, optionTexts } from './base/options.ts';

type Commands = ReadonlyMap<string, Command>;

const flagsOf = ({ options }: Command): Flag[] => [...options, 'json', 'help'];
const words = (list: readonly string[]): string => list.join(' ');
const withValue = (commands: Commands): Flag[] => [
  ...new Set([...commands.values()].flatMap(({ options }) => options)),
];

/** The words of bash's `case` that complete the value of an option. */
function bashValues(commands: Commands): string {
  return withValue(commands)
    .flatMap((flag) => {
      const { value, short, choices, isFile } = optionTexts[flag];
      if (value === undefined) return [];
      const names = short === undefined ? `--${flag}` : `--${flag}|-${short}`;
      const reply =
        choices !== undefined
          ? `compgen -W '${words(choices)}' -- "$word"`
          : isFile
            ? 'compgen -f -- "$word"'
            : ':';
      return [`    ${names}) COMPREPLY=($(${reply})); return ;;\n`];
    })
    .join('');
}

const bash = (commands: Commands): string => `# allstop completion bash
_allstop() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W '${words([...commands.keys()])} --help --version' -- "$word"))
    return
  fi
  case "$before" in
${bashValues(commands)}  esac
  case "$command" in
${[...commands]
  .map(([name, command]) => {
    const flags = words(flagsOf(command).map((flag) => `--${flag}`));
    const more =
      command.argument === undefined
        ? ''
        : command.argumentChoices === undefined
          ? ' $(compgen -f -- "$word")'
          : ` $(compgen -W '${words(command.argumentChoices())}' -- "$word")`;
    return `    ${name}) COMPREPLY=($(compgen -W '${flags}' -- "$word")${more}) ;;\n`;
  })
  .join('')}  esac
}
complete -o filenames -F _allstop allstop
`;

/** Quotes for zsh and fish. In zsh's specifications a colon and brackets have a meaning, too. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const zshText = (text: string): string => text.replaceAll(/[[\]:\\]/g, (sign) => `\\${sign}`);

function zshOption(flag: Flag): string {
  const { value, text, choices, isFile } = optionTexts[flag];
  const action = choices !== undefined ? `(${words(choices)})` : isFile ? '_files' : ' ';
  const own = value === undefined ? '' : `:${zshText(value)}:${action}`;
  return quoted(`--${flag}[${zshText(text)}]${own}`);
}

const zsh = (commands: Commands): string => `#compdef allstop
# allstop completion zsh
_allstop() {
  local -a commands
  commands=(
${[...commands].map(([name, { summary }]) => `    ${quoted(`${name}:${zshText(summary)}`)}\n`).join('')}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${[...commands]
  .map(([name, command]) => {
    const { argument, argumentChoices } = command;
    const action = argumentChoices === undefined ? '_files' : `(${words(argumentChoices())})`;
    const own = argument === undefined ? [] : [quoted(`1:${argument}:${action}`)];
    return `    ${name}) _arguments ${words([...own, ...flagsOf(command).map(zshOption)])} ;;\n`;
  })
  .join('')}  esac
}
# Sourced by a .zshrc it registers itself; as a file of the fpath it is called.
if [ "$funcstack[1]" = _allstop ]; then _allstop "$@"; else compdef _allstop allstop; fi
`;

function fish(commands: Commands): string {
  const isFirst = '__fish_use_subcommand';
  const lines = ['# allstop completion fish', 'complete -c allstop -f'];
  for (const [name, command] of commands) {
    const isHere = quoted(`__fish_seen_subcommand_from ${name}`);
    lines.push(`complete -c allstop -n ${isFirst} -a ${name} -d ${quoted(command.summary)}`);
    for (const flag of flagsOf(command)) {
      const { value, short, text, choices, isFile } = optionTexts[flag];
      const own = [
        `complete -c allstop -n ${isHere} -l ${flag}`,
        ...(short === undefined ? [] : [`-s ${short}`]),
        ...(value === undefined ? [] : [isFile ? '-r -F' : '-x']),
        ...(choices === undefined ? [] : [`-a ${quoted(words(choices))}`]),
        `-d ${quoted(text)}`,
      ];
      lines.push(own.join(' '));
    }
    const { argument, argumentChoices } = command;
    if (argument === undefined) continue;
    lines.push(
      argumentChoices === undefined
        ? `complete -c allstop -n ${isHere} -F`
        : `complete -c allstop -n ${isHere} -a ${quoted(words(argumentChoices()))}`,
    );
  }
  return `${lines.join('\n')}\n`;
}

const shells: Readonly<Record<string, (commands: Commands) => string>> = { bash, zsh, fish };

/** Makes the command. `commands` is called when it runs, because it is one of them itself. */
export function completionOf(commands: () => Commands): Command {
  const names = Object.keys(shells);
  return {
    summary: 'prints a script by which bash, zsh or fish complete the command line',
    help: `Prints a script by which SHELL (${names.join(', ')}) completes commands, options and values
of allstop. The command has to be on the PATH by this name, as after npm install --global allstop.`,
    examples: [
      'allstop completion bash >> ~/.bash_completion',
      'allstop completion zsh > ~/.zfunc/_allstop',
      'allstop completion fish > ~/.config/fish/completions/allstop.fish',
    ],
    argument: 'SHELL',
    argumentChoices: () => names,
    options: [],
    run: ({ argument: shell = '' }) => {
      const make = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
      if (make === undefined) {
        throw new UsageError(`SHELL must be one of ${names.join(', ')}, not '${shell}'`);
      }
      const script = make(commands());
      return { text: script, json: { completion: script } };
    },
  };
}
