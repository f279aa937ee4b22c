// The entry point of the package's workers. A bundler must not drop this import as without effect.
import 'allstop/worker';
