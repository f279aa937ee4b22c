const assert = require('node:assert/strict');
const { Coordinator, AllstopError } = require('allstop');

const coord = new Coordinator();
coord.requestStop();
assert.equal(coord.shouldStop(), true);
assert.ok(AllstopError.prototype instanceof Error);
