// require('allstop/cmake'): the folder with allstopConfig.cmake, as `npx allstop cmake` prints it.
const { sep } = require('node:path');

module.exports = __dirname.split(sep).join('/'); // a backslash would begin an escape sequence
