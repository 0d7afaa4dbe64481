import { beforeEach, describe, expect, it, vi } from 'vitest';

import { LogStore } from '../../log/logStore';
import { readLogChunk } from '../../protocol/read';
import { type ILogEntry, VERSION } from '../../protocol/snapshot';
import { release, releases, sharedSession, sharedSnapshot } from '../fixture';

const ID = 'rand-hie.dpnb';
const { process_id } = sharedSnapshot();

let ask: ReturnType<typeof vi.fn<(session: string) => boolean>>;
let book: LogStore;

/** The newest rows of a ledger of `count`. */
const hear = (count: number, newest = 50, changes: { process_id?: string; rows?: ILogEntry[] } = {}): void => {
  const rows = changes.rows ?? releases(Math.max(1, count - newest + 1), count);
  const session = sharedSession(0, { n_requests: count, log: rows });
  book.hear(sharedSnapshot({ sessions: [session], process_id: changes.process_id ?? process_id }));
};

const tell = (first: number, last: number, total: number, changes: object = {}): boolean =>
  book.hearChunk({
    version: VERSION,
    process_id,
    session: ID,
    start: first - 1,
    total,
    rows: releases(first, last).reverse(),
    ...changes
  });

const ids = (): number[] => book.log(ID).rows.map(row => row.id);

beforeEach(() => {
  ask = vi.fn<(session: string) => boolean>(() => true);
  book = new LogStore(ask);
});

describe('readLogChunk', () => {
  const chunk = { version: VERSION, process_id, session: ID, start: 0, total: 1, rows: [release(1)] };

  it('reads a part of a log', () => {
    expect(readLogChunk({ dpnb_log: chunk })).toMatchObject({ session: ID, rows: [release(1)] });
  });

  it.each([
    null,
    {},
    { dpnb: {} },
    { dpnb_log: null },
    { dpnb_log: { ...chunk, version: 2 } },
    { dpnb_log: { ...chunk, process_id: undefined } },
    { dpnb_log: { ...chunk, session: 3 } },
    { dpnb_log: { ...chunk, start: -1 } },
    { dpnb_log: { ...chunk, total: undefined } },
    { dpnb_log: { ...chunk, rows: [{ ...release(1), mu: '1' }] } }
  ])('leaves %j alone', data => {
    expect(readLogChunk(data)).toBeNull();
  });
});

describe('LogStore', () => {
  it('is whole without asking when the newest rows are all', async () => {
    hear(3);
    expect(book.log(ID).isComplete).toBe(true);
    expect(await book.request(ID)).toEqual(releases(1, 3));
    expect(ask).not.toHaveBeenCalled();
  });

  it('asks once for what is missing and puts the parts together', async () => {
    hear(120);
    const answer = book.request(ID);
    void book.request(ID);
    expect(ask.mock.calls).toEqual([[ID]]);
    expect(book.log(ID)).toMatchObject({ isComplete: false, isPending: true });
    expect(tell(1, 40, 120)).toBe(true);
    expect(tell(41, 80, 120)).toBe(true);
    expect(book.log(ID)).toMatchObject({ isComplete: true, isPending: false });
    expect(await answer).toEqual(releases(1, 120));
  });

  it('keeps the same rows for as long as nothing changes', () => {
    hear(3);
    const { rows } = book.log(ID);
    hear(3);
    expect(book.log(ID).rows).toBe(rows);
  });

  it('ignores what it did not ask for', () => {
    hear(120);
    expect(tell(1, 120, 120)).toBe(false);
    expect(ids()).toHaveLength(50);
    void book.request(ID);
    expect(tell(1, 40, 120, { session: 'another' })).toBe(false);
    expect(tell(1, 40, 120, { process_id: 'another' })).toBe(false);
    expect(ids()).toHaveLength(50);
  });

  it('does not take the end of an answer to somebody else for its own', () => {
    hear(120);
    void book.request(ID);
    expect(tell(81, 120, 120)).toBe(false);
    expect(book.log(ID).isPending).toBe(true);
    tell(1, 70, 120);
    expect(book.log(ID).isComplete).toBe(true);
  });

  it('merges what is released later', () => {
    hear(60);
    void book.request(ID);
    tell(1, 60, 60);
    hear(61);
    expect(ids()[0]).toBe(61);
    expect(book.log(ID)).toMatchObject({ isComplete: true });
    expect(ids()).toHaveLength(61);
  });

  it('takes a row as it was told last', () => {
    hear(2, 50, { rows: [release(2, { status: 'reserved' }), release(1)] });
    hear(2);
    expect(book.log(ID).rows[0]?.status).toBe('released');
  });

  it('asks again, but not for ever, when parts were lost', async () => {
    hear(120);
    const answer = book.request(ID);
    for (let time = 0; time < 3; time += 1) {
      tell(1, 20, 120);
      tell(31, 60, 120); // a hole before it
      tell(21, 30, 30); // said to be the end
    }
    expect(ask).toHaveBeenCalledTimes(3);
    expect(await answer).toBeNull();
    expect(book.log(ID).isPending).toBe(false);
  });

  it('asks the process that follows a restart, once it has the session', async () => {
    hear(120);
    const answer = book.request(ID);
    book.forget();
    expect(ids()).toEqual([]);
    expect(book.log(ID).isPending).toBe(true);
    expect(tell(1, 120, 120)).toBe(false);
    book.hear(sharedSnapshot({ sessions: [], process_id: 'next' }));
    expect(ask).toHaveBeenCalledTimes(1);
    hear(120, 50, { process_id: 'next' });
    expect(ask).toHaveBeenCalledTimes(2);
    tell(1, 120, 120, { process_id: 'next' });
    expect(await answer).toHaveLength(120);
  });

  it('asks again after the connection was lost, as soon as the kernel speaks', () => {
    hear(120);
    void book.request(ID);
    book.reconnect();
    hear(120);
    expect(ask).toHaveBeenCalledTimes(2);
  });

  it('asks as soon as it knows whom', () => {
    ask.mockReturnValueOnce(false);
    hear(120);
    void book.request(ID);
    expect(book.log(ID).isPending).toBe(true);
    hear(120);
    hear(120);
    expect(ask).toHaveBeenCalledTimes(2);
  });

  it('forgets the rows of a session that was recreated under the same name', () => {
    hear(60);
    void book.request(ID);
    tell(1, 60, 60);
    hear(0);
    expect(ids()).toEqual([]);
    hear(1);
    expect(ids()).toEqual([1]);
  });

  it('forgets the rows of another ledger under the same name', () => {
    hear(60);
    void book.request(ID);
    tell(1, 60, 60);
    const rows = releases(51, 100).map(row => ({ ...row, query: 'something else' }));
    hear(100, 50, { rows });
    expect(ids()).toEqual(rows.map(row => row.id));
  });

  it('gives up when nobody is left to answer', async () => {
    hear(120);
    const answer = book.request(ID);
    book.close();
    expect(await answer).toBeNull();
  });
});
