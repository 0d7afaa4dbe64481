import { csvName, download, toCsv } from './csv';
import type { ISession } from '../protocol/snapshot';
import type { ILedgerModel } from '../kernel/tokens';

/** Kernels' sessions whose log is being waited for: a second click exports nothing more. */
const waiting = new Set<string>();

/** Download the whole log of a session of the active kernel, which is asked first for what is not known here. */
export async function exportLog(model: ILedgerModel, { id, name }: Pick<ISession, 'id' | 'name'>): Promise<void> {
  const key = `${model.kernelId ?? ''} ${id}`;
  if (waiting.has(key)) {
    return;
  }
  waiting.add(key);
  try {
    const rows = await model.requestLog(id);
    if (rows) {
      download(csvName(name), toCsv(rows));
    }
  } finally {
    waiting.delete(key);
  }
}
