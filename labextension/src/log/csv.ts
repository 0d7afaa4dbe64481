import type { ILogEntry } from '../protocol/snapshot';

const COLUMNS = ['id', 'time', 'status', 'query', 'cost', 'mu', 'cost_fraction', 'error', 'cell_id'] as const;

/** Milliseconds for which a browser may still fetch what it was told to download: it begins a little later. */
const KEPT = 60_000;

/** A log as comma-separated values, as RFC 4180 has them: oldest first, an empty field for what there is not. */
export function toCsv(rows: readonly ILogEntry[]): string {
  const lines = [...rows].sort((a, b) => a.id - b.id).map(row => COLUMNS.map(column => row[column]));
  return [COLUMNS, ...lines].map(fields => `${fields.map(quoted).join(',')}\r\n`).join('');
}

/** The name of a session's log as a file, without what file systems refuse. */
export function csvName(session: string): string {
  // eslint-disable-next-line no-control-regex -- these are what file names cannot hold
  return `${session.replace(/[\u0000-\u001f<>:"/\\|?*]+/g, '-')}-log.csv`;
}

/** Let the browser save a text as a file. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link); // Firefox does not follow a link that is nowhere
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(url), KEPT);
}

function quoted(field: string | number | null): string {
  const text = field === null ? '' : String(field);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
