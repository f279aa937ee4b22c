#!/usr/bin/env node
// prebuildify runs this program in place of node-gyp for another platform than this machine. The
// environment variable ALLSTOP_TARGET has the name of the platform.
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { crossBuild } from './cross-build.mjs';
import { targets } from './targets.mjs';
import { zigBuild } from './toolchains/zig.mjs';

const root = resolve(import.meta.dirname, '..');
const target = targets.find(({ name }) => name === process.env.ALLSTOP_TARGET);
const build = join(root, 'build-prebuilds', target.name);
const addon = target.cross.zig
  ? zigBuild(target, build)
  : crossBuild({
      target,
      source: root,
      build,
      cmakeTarget: 'allstop',
      sources: [join(import.meta.dirname, 'toolchains/no_demangle.c')],
      settings: { ALLSTOP_ADDON: 'ON' },
    });
const output = join(root, 'build/Release');
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
copyFileSync(addon, join(output, 'allstop.node'));
