import type { ITranslator } from '@jupyterlab/translation';
import { afterEach, describe, expect, it } from 'vitest';

import { DOMAIN, setTranslator, trans } from '../translation';

describe('a text', () => {
  afterEach(() => setTranslator(null));

  it('has its values filled in where there is no translator', () => {
    expect(trans.__('%1 of the budget (%2)', '5%', 'mu 0.05')).toBe('5% of the budget (mu 0.05)');
    expect(trans.__('%2 before %1', 'a', 'b')).toBe('b before a');
    expect(trans.__('100%, %3')).toBe('100%, %3');
  });

  it.each([
    [0, '0 releases'],
    [1, '1 release'],
    [2, '2 releases']
  ])('agrees with the count %i', (count, text) => {
    expect(trans._n('%1 release', '%1 releases', count)).toBe(text);
  });

  it('is that of the Lab’s translator, in the domain of dpnb', () => {
    const loaded: string[] = [];
    const bundle = { __: (text: string): string => `[${text}]`, _n: (one: string): string => `[${one}]` };
    const load = (domain: string): object => {
      loaded.push(domain);
      return bundle;
    };
    setTranslator({ load, languageCode: 'xx' } as unknown as ITranslator);
    expect([trans.__('cost'), trans._n('one', 'many', 1)]).toEqual(['[cost]', '[one]']);
    expect(loaded).toEqual([DOMAIN]);
  });
});
