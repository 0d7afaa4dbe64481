/// <reference types="vite/client" />
import ts from 'typescript';
import { expect, it } from 'vitest';

/** The sources of the extension by their paths, without its tests and what is generated from Python. */
const SOURCES = import.meta.glob<string>(['../**/*.ts', '!../__tests__/**', '!../protocol/**'], {
  query: '?raw',
  import: 'default',
  eager: true
});

/** Starts like a sentence or a label, or has two words in lower case. */
const LOOKS_LIKE_TEXT = /^[A-Z][a-z]+|[A-Za-z]{2,},? [a-z]{2,}/;

/** Literals that readers do not see, or that must not be translated. */
const OTHER_LITERALS = new Set([
  ...['ArrowRight', 'ArrowUp', 'ArrowLeft', 'ArrowDown', 'PageUp', 'PageDown', 'Home', 'End', 'Enter', 'Escape'],
  'Python 3', // the name of a kernel, until its specification is known
  'Notebook', // the factory of a document
  'input, button' // a selector
]);

/** Texts that are displayed without the translator, with their lines. */
function untranslated(source: ts.SourceFile): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node) || isTranslated(node) || isForDevelopers(node)) {
      return;
    }
    const isPiece = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (isPiece && isShown(node.text)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      found.push(`${source.fileName}:${line + 1}: ${node.text}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const isShown = (text: string): boolean =>
  LOOKS_LIKE_TEXT.test(text) && !OTHER_LITERALS.has(text) && !/^[\s<]|^import |dpnb[-: ]|dpnb$/.test(text);

const isTranslated = (node: ts.Node): boolean =>
  ts.isCallExpression(node) && /\.(__|_n)$/.test(node.expression.getText());

/** Messages in the browser's console, exceptions, and the descriptions of plugins and tokens. */
const isForDevelopers = (node: ts.Node): boolean =>
  (ts.isCallExpression(node) && node.expression.getText().startsWith('console.')) ||
  (ts.isNewExpression(node) && ['Error', 'Token', 'TypeError'].includes(node.expression.getText())) ||
  (ts.isPropertyAssignment(node) && node.name.getText() === 'description');

const parsed = (name: string, text: string): ts.SourceFile =>
  ts.createSourceFile(name, text, ts.ScriptTarget.ES2022, true);

it('finds a text that is displayed without the translator', () => {
  const text =
    "button('dpnb-x', 'Release'); setText(node, `${x} was charged`); trans.__('Refine'); f('dpnb-a dpnb-b');";
  expect(untranslated(parsed('view.ts', text))).toEqual(['view.ts:1: Release']);
  expect(untranslated(parsed('view.ts', "setText(node, `This has cost ${x}`); g('no reply yet');"))).toHaveLength(2);
});

it('every text goes through the translator', () => {
  const files = Object.entries(SOURCES);
  expect(files.length).toBeGreaterThan(40);
  expect(files.flatMap(([path, text]) => untranslated(parsed(path, text)))).toEqual([]);
});
