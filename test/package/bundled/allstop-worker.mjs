// The entry point of the package's workers. A bundler must not drop this import as without effect.
// oxlint-disable-next-line import/no-unassigned-import
import 'allstop/worker';
