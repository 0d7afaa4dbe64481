import type { ITranslator } from '@jupyterlab/translation';

/** Domain of dpnb's texts, for language packs. */
export const DOMAIN = 'dpnb';

/** The part of a translation bundle that dpnb uses; texts have placeholders `%1`, `%2`, and so on. */
interface ITexts {
  /** A text in the reader's language. */
  __(text: string, ...values: (string | number)[]): string;
  /** The singular for a count of 1, otherwise the plural; `%1` is the count. */
  _n(singular: string, plural: string, count: number, ...values: (string | number)[]): string;
}

const filled = (text: string, values: (string | number)[]): string =>
  text.replace(/%(\d+)/g, (placeholder, index: string) => String(values[Number(index) - 1] ?? placeholder));

/** The texts as they are written, for pages without a translator and for the widgets in other front ends. */
const asWritten: ITexts = {
  __: (text, ...values) => filled(text, values),
  _n: (singular, plural, count, ...values) => filled(count === 1 ? singular : plural, [count, ...values])
};

let current: ITexts = asWritten;

/**
 * The texts of the extension in the reader's language: `trans.__('%1 left', text)`.
 *
 * Use it when a text is displayed, not in a constant of a module: the language is known only after the modules are
 * loaded.  The module imports nothing at run time, so that the widgets' bundles do not contain JupyterLab's packages.
 */
export const trans: ITexts = {
  __: (text, ...values) => current.__(text, ...values),
  _n: (singular, plural, count, ...values) => current._n(singular, plural, count, ...values)
};

/** Use the translator of the Lab; null for the texts as they are written. */
export function setTranslator(translator: ITranslator | null): void {
  current = translator ? translator.load(DOMAIN) : asWritten;
}
