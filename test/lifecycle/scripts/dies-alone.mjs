// A worker that dies and has never heard of the package.
const error = new RangeError('unknown to us', { cause: 'a string' });
throw Object.assign(error, { code: 'E_ALONE', field: [1] });
