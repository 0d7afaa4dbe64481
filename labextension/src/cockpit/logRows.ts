import type { IAuditRow } from '../protocol/curation';
import { csvText } from '../log/csv';

const COLUMNS = ['id', 'time', 'actor', 'kind', 'status', 'words', 'cost'] as const;

/** A log as comma-separated values, oldest first; safe to open in a spreadsheet. */
export function logCsv(rows: readonly IAuditRow[]): string {
  const lines = [...rows].sort((a, b) => a.id - b.id).map(row => COLUMNS.map(column => row[column]));
  return csvText([COLUMNS, ...lines.map(fields => fields.map(cell))]);
}

/** Without control characters, and as a text where a spreadsheet would take it for a formula. */
export function cell(field: string | number | null): string | number | null {
  if (typeof field !== 'string') {
    return field;
  }
  // eslint-disable-next-line no-control-regex -- these are what is removed
  const text = field.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '');
  return /^\s*[=+\-@＝＋－＠]/.test(text) || /^[\t\r]/.test(field) ? `'${text}` : text;
}

/** Whether each word of a search occurs in a row; "#3" is the row with this number. */
export function isFound(row: IAuditRow, search: string): boolean {
  const text = [row.actor ?? '', row.kind, row.status, row.words, row.cost, row.time].join('\n').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every(word => (/^#\d+$/.test(word) ? row.id === Number(word.slice(1)) : text.includes(word)));
}

/** Number of the newest rows that are read again while one of them is unanswered. */
const READ_AGAIN = 100;

/** The known rows of a ledger, and from which number on they must be read again. */
export class LogRows {
  private readonly _rows = new Map<number, IAuditRow>();

  /** Newest first. */
  get all(): IAuditRow[] {
    return [...this._rows.values()].sort((a, b) => b.id - a.id);
  }

  get size(): number {
    return this._rows.size;
  }

  add(rows: readonly IAuditRow[]): void {
    rows.forEach(row => this._rows.set(row.id, row));
  }

  /**
   * The number of the last row before those that are new or may still change.
   *
   * A row may stay unanswered for ever, for example after a crash, and a request undecided; not all rows since then are read with each change.
   */
  get settled(): number {
    const last = this.all[0]?.id ?? 0;
    const pending = this.all
      .filter(row => row.status === 'reserved' || row.status === 'pending')
      .map(row => row.id - 1);
    return Math.max(Math.min(last, ...pending), last - READ_AGAIN, 0);
  }
}
