/// <reference types="vite/client" />
import { expect, it } from 'vitest';

const SOURCES = import.meta.glob<string>(['../../**/*.ts', '!../../__tests__/**'], {
  query: '?raw',
  import: 'default',
  eager: true
});
const IMPORT = /^(?:import|export) (type )?.*?from '([^']+)'/gms;

/** The files and packages that a file uses, without those of which it uses only types. */
function used(start: string): [files: Set<string>, packages: string[]] {
  const files = new Set([start]);
  const packages: string[] = [];
  for (const file of files) {
    for (const [, isType, name = ''] of (SOURCES[file] ?? '').matchAll(IMPORT)) {
      if (isType !== undefined) {
        continue;
      }
      if (name.startsWith('.')) {
        files.add(`${new URL(name, `file:///src/${file.slice(6)}`).pathname.replace('/src/', '../../')}.ts`);
      } else {
        packages.push(name);
      }
    }
  }
  return [files, packages];
}

it('the curator’s page has no package of JupyterLab, whose panel it shares modules with', () => {
  const [files, packages] = used('../../cockpit/cockpit.ts');
  expect([...files]).toEqual(expect.arrayContaining(['../../panel/gauge.ts', '../../timeline/timeline.ts']));
  expect([...files].filter(file => SOURCES[file] === undefined)).toEqual([]);
  expect(packages).toEqual([]);
  expect(used('../../panel/panel.ts')[1]).not.toEqual([]); // the control
});
