// The third-party style addon: native threads that share a Coordinator.
import { createRequire } from 'node:module';

export const addon = createRequire(import.meta.url)(
  '../../addons/test-addon/build/Release/test_addon.node',
);
