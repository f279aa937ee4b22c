// require('allstop/include'): the folder for the include path of an addon, as `npx allstop include`
// prints it. gyp splits a path at its spaces, and make and its shell read other signs in it: a path
// with any of them is given relative to the working directory, as with `--relative`.
const { relative, sep } = require('node:path');

const folder = /[\s"'`$&;|<>()*?[\]{}#!~^%=]/.test(__dirname)
  ? relative(process.cwd(), __dirname)
  : __dirname;

module.exports = folder.split(sep).join('/'); // a backslash would begin an escape sequence
