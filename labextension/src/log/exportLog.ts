import { csvName, download, toCsv } from './csv';
import type { ISessionSnapshot } from '../protocol/snapshot';
import type { ILedgerModel } from '../kernel/tokens';

/** Sessions with a pending export, which a second click does not start again. */
const pending = new Set<string>();

/** Download the whole log of a session of the active kernel; missing rows are requested first. */
export async function exportLog(
  model: ILedgerModel,
  { id, name }: Pick<ISessionSnapshot, 'id' | 'name'>
): Promise<void> {
  const key = `${model.kernelId ?? ''} ${id}`;
  if (pending.has(key)) {
    return;
  }
  pending.add(key);
  try {
    const rows = await model.requestLog(id);
    if (rows) {
      download(csvName(name), toCsv(rows));
    }
  } finally {
    pending.delete(key);
  }
}
