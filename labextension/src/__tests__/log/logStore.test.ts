import { beforeEach, describe, expect, it, vi } from 'vitest';

import { LogStore } from '../../log/logStore';
import { readLogChunk } from '../../protocol/read';
import { type ILogEntry, VERSION } from '../../protocol/snapshot';
import { release, releases, sharedSession, sharedSnapshot } from '../fixture';

const ID = 'rand-hie.dpnb';
const { process_id } = sharedSnapshot();

let sendRequest: ReturnType<typeof vi.fn<(session: string) => boolean>>;
let store: LogStore;

/** The newest rows of a ledger of `count`. */
const update = (count: number, newest = 50, changes: { process_id?: string; rows?: ILogEntry[] } = {}): void => {
  const rows = changes.rows ?? releases(Math.max(1, count - newest + 1), count);
  const session = sharedSession(0, { n_requests: count, log: rows });
  store.update(sharedSnapshot({ sessions: [session], process_id: changes.process_id ?? process_id }));
};

const addRows = (first: number, last: number, total: number, changes: object = {}): boolean =>
  store.addChunk({
    version: VERSION,
    process_id,
    session: ID,
    start: first - 1,
    total,
    rows: releases(first, last).reverse(),
    ...changes
  });

const ids = (): number[] => store.log(ID).rows.map(row => row.id);

beforeEach(() => {
  sendRequest = vi.fn<(session: string) => boolean>(() => true);
  store = new LogStore(sendRequest);
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
    update(3);
    expect(store.log(ID).isComplete).toBe(true);
    expect(await store.request(ID)).toEqual(releases(1, 3));
    expect(sendRequest).not.toHaveBeenCalled();
  });

  it('asks once for what is missing and puts the parts together', async () => {
    update(120);
    const answer = store.request(ID);
    void store.request(ID);
    expect(sendRequest.mock.calls).toEqual([[ID]]);
    expect(store.log(ID)).toMatchObject({ isComplete: false, isPending: true });
    expect(addRows(1, 40, 120)).toBe(true);
    expect(addRows(41, 80, 120)).toBe(true);
    expect(store.log(ID)).toMatchObject({ isComplete: true, isPending: false });
    expect(await answer).toEqual(releases(1, 120));
  });

  it('keeps the same rows for as long as nothing changes', () => {
    update(3);
    const { rows } = store.log(ID);
    update(3);
    expect(store.log(ID).rows).toBe(rows);
  });

  it('ignores parts that were not requested', () => {
    update(120);
    expect(addRows(1, 120, 120)).toBe(false);
    expect(ids()).toHaveLength(50);
    void store.request(ID);
    expect(addRows(1, 40, 120, { session: 'another' })).toBe(false);
    expect(addRows(1, 40, 120, { process_id: 'another' })).toBe(false);
    expect(ids()).toHaveLength(50);
  });

  it('does not take the end of an answer to somebody else for its own', () => {
    update(120);
    void store.request(ID);
    expect(addRows(81, 120, 120)).toBe(false);
    expect(store.log(ID).isPending).toBe(true);
    addRows(1, 70, 120);
    expect(store.log(ID).isComplete).toBe(true);
  });

  it('merges what is released later', () => {
    update(60);
    void store.request(ID);
    addRows(1, 60, 60);
    update(61);
    expect(ids()[0]).toBe(61);
    expect(store.log(ID)).toMatchObject({ isComplete: true });
    expect(ids()).toHaveLength(61);
  });

  it('takes a row as it was told last', () => {
    update(2, 50, { rows: [release(2, { status: 'reserved' }), release(1)] });
    update(2);
    expect(store.log(ID).rows[0]?.status).toBe('released');
  });

  it('asks again, but not for ever, when parts were lost', async () => {
    update(120);
    const answer = store.request(ID);
    for (let time = 0; time < 3; time += 1) {
      addRows(1, 20, 120);
      addRows(31, 60, 120); // a hole before it
      addRows(21, 30, 30); // said to be the end
    }
    expect(sendRequest).toHaveBeenCalledTimes(3);
    expect(await answer).toBeNull();
    expect(store.log(ID).isPending).toBe(false);
  });

  it('asks the process that follows a restart, once it has the session', async () => {
    update(120);
    const answer = store.request(ID);
    store.forget();
    expect(ids()).toEqual([]);
    expect(store.log(ID).isPending).toBe(true);
    expect(addRows(1, 120, 120)).toBe(false);
    store.update(sharedSnapshot({ sessions: [], process_id: 'next' }));
    expect(sendRequest).toHaveBeenCalledTimes(1);
    update(120, 50, { process_id: 'next' });
    expect(sendRequest).toHaveBeenCalledTimes(2);
    addRows(1, 120, 120, { process_id: 'next' });
    expect(await answer).toHaveLength(120);
  });

  it('asks again after the connection was lost, as soon as the kernel speaks', () => {
    update(120);
    void store.request(ID);
    store.reconnect();
    update(120);
    expect(sendRequest).toHaveBeenCalledTimes(2);
  });

  it('asks as soon as it knows whom', () => {
    sendRequest.mockReturnValueOnce(false);
    update(120);
    void store.request(ID);
    expect(store.log(ID).isPending).toBe(true);
    update(120);
    update(120);
    expect(sendRequest).toHaveBeenCalledTimes(2);
  });

  it('forgets the rows of a session that was recreated under the same name', () => {
    update(60);
    void store.request(ID);
    addRows(1, 60, 60);
    update(0);
    expect(ids()).toEqual([]);
    update(1);
    expect(ids()).toEqual([1]);
  });

  it('forgets the rows of another ledger under the same name', () => {
    update(60);
    void store.request(ID);
    addRows(1, 60, 60);
    const rows = releases(51, 100).map(row => ({ ...row, query: 'something else' }));
    update(100, 50, { rows });
    expect(ids()).toEqual(rows.map(row => row.id));
  });

  it('gives up when nobody is left to answer', async () => {
    update(120);
    const answer = store.request(ID);
    store.close();
    expect(await answer).toBeNull();
  });
});
