import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    environment: 'jsdom',
    // Files share a process and its document: a document and JupyterLab's packages for each took most of the time.
    isolate: false,
    include: ['src/__tests__/**/*.test.ts'],
    setupFiles: ['src/__tests__/setup.ts'],
    restoreMocks: true,
    // JupyterLab's packages import each other, and stylesheets, in ways that only a bundler resolves.
    server: { deps: { inline: [/@jupyterlab/, /@jupyter\//, /@lumino/] } }
  }
});
