import { beforeEach, describe, expect, it, vi } from 'vitest';

import { SessionView } from '../../panel/sessionView';
import type { ISessionSnapshot } from '../../protocol/snapshot';
import { FakeTools, found, texts } from '../fakeModel';
import { sessionWithoutBudget, sharedSession } from '../fixture';

let tools: FakeTools;
let view: SessionView;

/** A session without what is computed only when it is compared. */
const alone = (session: ISessionSnapshot = sharedSession()): ISessionSnapshot => ({
  ...session,
  is_compared: false,
  filters: session.filters.slice(0, 1),
  odometers: session.odometers.slice(0, 1)
});

const toggle = async (fold: string): Promise<void> => {
  found(view.node, `.${fold} > summary`).click();
  await vi.waitFor(() => undefined);
  found(view.node, `.${fold}`).dispatchEvent(new Event('toggle'));
};

beforeEach(() => {
  tools = new FakeTools();
  view = new SessionView(tools, tools);
  document.body.replaceChildren(view.node);
});

describe('the comparison of filters and odometers', () => {
  it('is requested when the reader opens the accounting details, and until they are closed', async () => {
    view.update(alone());
    expect(tools.compare).not.toHaveBeenCalled();
    await toggle('dpnb-accounting');
    expect(tools.compare.mock.calls).toEqual([['rand-hie.dpnb', true]]);
    view.update(alone());
    expect(tools.compare).toHaveBeenCalledOnce();
    await toggle('dpnb-accounting');
    expect(tools.compare.mock.calls.slice(1)).toEqual([['rand-hie.dpnb', false]]);
  });

  it('is shown when it comes, and until then that it is missing', async () => {
    view.update(alone());
    await toggle('dpnb-accounting');
    const missing = found(view.node, '.dpnb-not-compared');
    expect(missing.hidden).toBe(false);
    expect(missing.textContent).toContain('as soon as the kernel is idle');
    view.update(sharedSession());
    expect(missing.hidden).toBe(true);
    expect(texts(view.node, '.dpnb-filter-name')).toHaveLength(sharedSession().filters.length);
  });

  it('is requested again when another page has closed it', async () => {
    view.update(alone());
    await toggle('dpnb-accounting');
    view.update(sharedSession());
    expect(tools.compare).toHaveBeenCalledOnce();
    view.update(alone());
    expect(tools.compare.mock.calls).toEqual([
      ['rand-hie.dpnb', true],
      ['rand-hie.dpnb', true]
    ]);
  });

  it('is requested for the odometers over time of a session without a budget', async () => {
    const session = alone(sessionWithoutBudget());
    view.update(session);
    view.unfold();
    await vi.waitFor(() => expect(tools.compare.mock.calls).toEqual([[session.id, true]]));
  });

  it('is not requested for the budget over time', async () => {
    view.update(alone());
    view.unfold();
    await new Promise(resolve => setTimeout(resolve));
    view.update(alone());
    expect(tools.compare).not.toHaveBeenCalled();
  });
});
