import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import ts from 'typescript';
import tseslint from 'typescript-eslint';

// What `tsc --noEmit` says of a file: the typed rules have read the same program, which tsc would read again.
const compiler = {
  create: context => ({
    Program: node => {
      const { esTreeNodeToTSNodeMap, program } = context.sourceCode.parserServices;
      const file = esTreeNodeToTSNodeMap.get(node);
      const found = [
        ...program.getOptionsDiagnostics(),
        ...program.getGlobalDiagnostics(),
        ...program.getSemanticDiagnostics(file),
        ...program.getDeclarationDiagnostics(file)
      ];
      for (const { messageText, start } of found) {
        const message = ts.flattenDiagnosticMessageText(messageText, '\n');
        context.report({ loc: context.sourceCode.getLocFromIndex(start ?? 0), message });
      }
    }
  })
};

export default tseslint.config(
  { ignores: ['lib', 'node_modules', '.yarn'] },
  js.configs.recommended,
  { files: ['scripts/**/*.mjs'], languageOptions: { globals: { URL: 'readonly' } } },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    plugins: { typescript: { rules: { compiler } } },
    languageOptions: {
      parserOptions: { project: './tsconfig.test.json', tsconfigRootDir: import.meta.dirname }
    },
    rules: {
      'typescript/compiler': 'error',
      '@typescript-eslint/explicit-function-return-type': ['error', { allowTypedFunctionExpressions: true }],
      // A token and the interface it stands for share a name: that is how JupyterLab finds one by the other.
      '@typescript-eslint/no-redeclare': 'off',
      // There are no enums here, and to look for them takes a third of the time of all rules.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      // A signal's slot is bound by the second argument of connect(), which the Jupyter plugin insists on.
      '@typescript-eslint/unbound-method': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }]
    }
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/__tests__/**'],
    plugins: { jupyter },
    rules: {
      ...jupyter.configs.recommended[0].rules,
      // The kernel writes most of what is shown, in English; a page that translates the rest would mix languages.
      'jupyter/no-untranslated-string': 'off',
      // The whole extension is smaller than the code that would load it later, and activation needs all of it.
      'jupyter/prefer-lazy-imports': 'off'
    }
  }
);
