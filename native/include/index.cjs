// require('allstop/include'): the folder for the include path of an addon, as `npx allstop include`
// prints it. gyp splits a path at its spaces, and the shell of make reads other characters of it: a path
// with any of them is given relative to the working directory, as `npx allstop include --relative` does.
const { relative, sep } = require('node:path');

const folder = /[\s"'`$&;|<>()*?[\]{}#!~^%=]/.test(__dirname)
  ? relative(process.cwd(), __dirname)
  : __dirname;

module.exports = folder.split(sep).join('/'); // a backslash would begin an escape sequence
