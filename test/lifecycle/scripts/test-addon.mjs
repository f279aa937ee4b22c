// Loads test/addons/test-addon: native threads that share a Coordinator with JavaScript.
import { createRequire } from 'node:module';

export const addon = createRequire(import.meta.url)(
  '../../addons/test-addon/build/Release/test_addon.node',
);
