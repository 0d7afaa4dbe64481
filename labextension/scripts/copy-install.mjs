// `jupyter labextension list` reads install.json from beside the bundle.  It is copied here rather than shipped as a
// second shared-data entry, which would put two files at one path in the next wheel.
import { copyFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const from = new URL('../install.json', import.meta.url);
const to = new URL('../../dpnb/labextension/install.json', import.meta.url);
copyFileSync(fileURLToPath(from), fileURLToPath(to));
