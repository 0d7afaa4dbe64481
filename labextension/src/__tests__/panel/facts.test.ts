import { expect, it } from 'vitest';

import { GuaranteeView } from '../../panel/facts';
import { sharedSession } from '../fixture';

it('names the engine that holds the table, as text', () => {
  const view = new GuaranteeView();
  view.update(sharedSession());
  expect(view.node.querySelector('.dpnb-engine')?.textContent).toBe('in memory');
  view.update({ ...sharedSession(), engine: '<b>DuckDB</b>' });
  expect(view.node.querySelector('.dpnb-engine')?.textContent).toBe('in <b>DuckDB</b>');
  expect(view.node.querySelector('b')).toBeNull();
});
