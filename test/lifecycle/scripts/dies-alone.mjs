// A worker that never loads the package and dies of an uncaught error.
const error = new RangeError('unknown to us', { cause: 'a string' });
throw Object.assign(error, { code: 'E_ALONE', field: [1] });
