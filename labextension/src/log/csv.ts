import type { ILogEntry } from '../protocol/snapshot';

const COLUMNS = [
  ...(['id', 'time', 'status', 'query', 'cost_fraction', 'cost', 'mu'] as const),
  ...(['estimate', 'value', 'low', 'high', 'error', 'cell_id'] as const)
];

/** Milliseconds after which the URL of a download is revoked: the browser fetches it with a delay. */
const REVOKE_AFTER = 60_000;

/** A log as comma-separated values (RFC 4180): oldest first, with an empty field for a missing value. */
export function toCsv(rows: readonly ILogEntry[]): string {
  const lines = [...rows].sort((a, b) => a.id - b.id).map(row => COLUMNS.map(column => row[column]));
  return csvText([COLUMNS, ...lines]);
}

/** Lines of fields as comma-separated values. */
export function csvText(lines: readonly (readonly (string | number | null)[])[]): string {
  return lines.map(fields => `${fields.map(quoted).join(',')}\r\n`).join('');
}

/** File name of a session's log. */
export const csvName = (session: string): string => `${fileName(session)}-log.csv`;

/** A name without characters that file systems refuse. */
export function fileName(name: string): string {
  // eslint-disable-next-line no-control-regex -- file names cannot contain these
  return name.replace(/[\u0000-\u001f<>:"/\\|?*]+/g, '-');
}

/** Let the browser save a text as a file. */
export function download(name: string, text: string, type = 'text/csv'): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link); // Firefox follows only links in the document
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER);
}

function quoted(field: string | number | null): string {
  const text = field === null ? '' : String(field);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
