import { beforeEach, describe, expect, it, vi } from 'vitest';

import { ConnectionView } from '../../panel/connection';
import { SessionView } from '../../panel/sessionView';
import { found } from '../fakeModel';
import { CURRENT, LOST, sharedSession } from '../fixture';

const reconnect = vi.fn();
let view: ConnectionView;

const state = (): HTMLElement => found(view.node, '[role=status]');
const button = (): HTMLButtonElement => found(view.node, 'button');

beforeEach(() => {
  vi.useFakeTimers();
  reconnect.mockClear();
  view = new ConnectionView(reconnect);
  document.body.replaceChildren(view.node);
});

describe('ConnectionView', () => {
  it('is hidden for a local session', () => {
    expect(view.node.hidden).toBe(true);
    view.update(LOST);
    view.update(null);
    expect(view.node.hidden).toBe(true);
  });

  it('shows where the table is, and that the figures are up to date, without a button', () => {
    view.update(CURRENT);
    expect(view.node.hidden).toBe(false);
    expect(view.node.textContent).toContain(`Table ${CURRENT.where}.`);
    expect(state().textContent).toBe('Up to date.');
    expect(button().hidden).toBe(true);
    expect(found(view.node, 'a').hidden).toBe(true);
  });

  it('shows in words that the figures are out of date, with an explanation and a button', () => {
    view.update(LOST);
    expect(state().textContent).toBe(
      'Out of date since 14:02: the service cannot be reached; reconnecting. All figures here are the last known.'
    );
    expect(found<HTMLAnchorElement>(view.node, 'a').hash).toBe('#dpnb-explain-out-of-date');
    button().click();
    expect(reconnect).toHaveBeenCalledOnce();
  });

  it('announces both changes in one element that stays on the page', () => {
    view.update(CURRENT);
    const announced = state();
    view.update(LOST);
    view.update(CURRENT);
    expect(state()).toBe(announced);
    expect(announced.textContent).toBe('Up to date.');
  });

  it('does not touch a text that has not changed, so that a screen reader does not repeat it', () => {
    view.update(LOST);
    const text = state().firstChild;
    view.update({ ...LOST });
    expect(state().firstChild).toBe(text);
  });

  it('sends one request for several presses, and another later', () => {
    view.update(LOST);
    button().click();
    button().click();
    expect(reconnect).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(2_000);
    button().click();
    expect(reconnect).toHaveBeenCalledTimes(2);
  });

  it('keeps the focus when the button disappears', () => {
    view.update(LOST);
    button().focus();
    view.update(CURRENT);
    expect(document.activeElement).toBe(view.node);
  });

  it('leaves the focus elsewhere alone', () => {
    const other = document.createElement('button');
    document.body.append(other);
    view.update(LOST);
    other.focus();
    view.update(CURRENT);
    expect(document.activeElement).toBe(other);
  });
});

describe('SessionView', () => {
  it('names a session that is out of date so, and dims its figures', () => {
    const session = new SessionView(null, { reconnect, compare: vi.fn() });
    session.update(sharedSession(0, { connection: LOST }));
    expect(session.node.getAttribute('aria-label')).toBe('dpnb session rand-hie, out of date');
    expect(session.node.classList.contains('dpnb-mod-out-of-date')).toBe(true);
    found(session.node, '.dpnb-connection-button').click();
    expect(reconnect).toHaveBeenCalledOnce();
    session.update(sharedSession(0, { connection: CURRENT }));
    expect(session.node.getAttribute('aria-label')).toBe('dpnb session rand-hie');
    expect(session.node.classList.contains('dpnb-mod-out-of-date')).toBe(false);
  });
});
