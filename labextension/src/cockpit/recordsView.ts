import type { Service } from './service';
import { cellFor, heading, moment } from './tableParts';
import { button, element, type IView, setText, Views } from '../dom/dom';
import { Fold } from '../dom/fold';
import type { IAuditState, IBackupState, IReadFigure, IRecordsPage, IVersionState } from '../protocol/curation';
import type { ITableState } from '../protocol/curation';
import { trans } from '../translation';

/** What is kept of a table: the versions, the last copy of the ledger, the last audit; and figures of the service. */
export class RecordsView implements IView<ITableState> {
  readonly node: HTMLElement;
  private readonly _backup = element('p', '');
  private readonly _audit = element('p', '');
  private readonly _start = button('dpnb-button', trans.__('Audit the ledger'), () => this._onStart());
  private readonly _result = new Fold('dpnb-audit', trans.__('Result of the audit'));
  private readonly _text = element('pre', 'dpnb-plan-text dpnb-foreign');
  private readonly _versions = new Fold('dpnb-versions', '');
  private readonly _figures = new Fold('dpnb-figures', trans.__('Figures of the service'));
  private readonly _versionRows: Views<IVersionState>;
  private readonly _figureRows: Views<IReadFigure>;
  private _name = '';
  private _isReading = false;
  private _isAgain = false;

  constructor(
    private readonly _service: Service,
    private readonly _fail: (error: unknown) => void
  ) {
    const title = element('h2', 'dpnb-title', trans.__('Ledger'));
    title.id = 'dpnb-records-title';
    const [versions, versionRows] = tableOf(trans.__('Versions of the table, newest first'), [
      trans.__('Version'),
      trans.__('First used'),
      trans.__('Requests'),
      trans.__('Last request'),
      trans.__('What changed')
    ]);
    const [figures, figureRows] = tableOf(trans.__('Figures and their values'), [trans.__('Figure'), trans.__('Now')]);
    this._versionRows = new Views(versionRows, versionRow);
    this._figureRows = new Views(figureRows, figureRow);
    const more = trans.__(
      'Of this table and of the process. Prometheus reads them at /metrics of this address, with a token of the role monitor.'
    );
    this._text.tabIndex = 0;
    this._text.setAttribute('role', 'group');
    this._text.setAttribute('aria-label', trans.__('Result of the audit'));
    this._result.body.append(this._text);
    this._versions.body.append(versions);
    this._figures.body.append(element('p', 'dpnb-quiet', more), figures);
    this._audit.setAttribute('role', 'status');
    this.node = element('section', 'dpnb-block dpnb-records', title, this._backup, this._audit, this._start);
    this.node.append(this._result.node, this._versions.node, this._figures.node);
    this.node.setAttribute('aria-labelledby', title.id);
  }

  update({ name }: ITableState): void {
    this._name = name;
    void this._read(false);
  }

  private _onStart(): void {
    if (this._start.getAttribute('aria-disabled') !== 'true') {
      void this._read(true);
    }
  }

  /** Read the records, or start an audit; while that is under way, once more afterwards. */
  private async _read(isAudit: boolean): Promise<void> {
    if (this._isReading && !isAudit) {
      this._isAgain = true;
      return;
    }
    this._isReading = true;
    try {
      const name = this._name;
      const page = await (isAudit ? this._service.audit(name) : this._service.records(name));
      if (name === this._name) {
        this._draw(page); // otherwise it is read again below
      }
    } catch (error) {
      this._fail(error);
    } finally {
      this._isReading = false;
    }
    if (this._isAgain) {
      this._isAgain = false;
      await this._read(false);
    }
  }

  private _draw({ rows, versions, backup, audit, figures }: IRecordsPage): void {
    setText(this._backup, backupWords(backup, rows));
    setText(this._audit, auditWords(audit));
    const isEnded = typeof audit?.ended === 'string';
    this._start.setAttribute('aria-disabled', String(audit !== null && !isEnded));
    this._result.node.hidden = !isEnded;
    setText(this._text, audit?.text ?? '');
    if (isEnded && !audit.is_fine) {
      this._result.unfold();
    }
    this._versions.rename(trans.__('Versions of the table (%1)', versions.length));
    this._versionRows.update(versions);
    this._figures.node.hidden = figures.length === 0;
    this._figureRows.update(figures);
  }
}

function backupWords(backup: IBackupState | null, rows: number): string {
  if (backup === null) {
    return trans.__('No backup is known: python -m dpnb backup has made none, or could not note it beside the ledger.');
  }
  const when = moment(backup.time);
  return backup.is_known
    ? trans.__('Last backup: %1, up to row %2 of %3.', when, backup.rows, rows)
    : trans.__('The last backup, %1, is not of this ledger as it is now.', when);
}

function auditWords(audit: IAuditState | null): string {
  if (audit === null) {
    return trans.__('No audit since the service started.');
  }
  const { actor, begun, ended, is_fine: isFine } = audit;
  if (ended === null) {
    return trans.__('An audit runs since %1, started by %2. Analysts do not wait for it.', moment(begun), actor);
  }
  return isFine
    ? trans.__('Last audit: %1, started by %2: no problem found.', moment(ended), actor)
    : trans.__('Last audit: %1, started by %2: it found a problem, or could not be made.', moment(ended), actor);
}

/** A table with a caption and headings, and its body. */
function tableOf(caption: string, headings: string[]): [HTMLTableElement, HTMLTableSectionElement] {
  const body = element('tbody', '');
  const head = element('thead', '', element('tr', '', ...headings.map(heading)));
  return [element('table', '', element('caption', 'dpnb-visually-hidden', caption), head, body), body];
}

function versionRow(): IView<IVersionState> {
  const name = element('th', 'dpnb-foreign');
  name.scope = 'row';
  const since = cellFor(trans.__('First used'));
  const requests = cellFor(trans.__('Requests'));
  const last = cellFor(trans.__('Last request'));
  const list = element('ul', 'dpnb-changes');
  const changes = new Views(list, (): IView<string> => {
    const node = element('li', 'dpnb-foreign');
    return { node, update: text => setText(node, text) };
  });
  return {
    node: element('tr', '', name, since, requests, last, element('td', 'dpnb-version-changes', list)),
    update: (version): void => {
      setText(name, version.name);
      setText(since, version.since === null ? trans.__('not yet') : moment(version.since));
      setText(requests, String(version.requests));
      setText(last, version.last === null ? '–' : moment(version.last));
      changes.update(version.changes);
      list.hidden = version.changes.length === 0;
    }
  };
}

function figureRow(): IView<IReadFigure> {
  const words = element('th', 'dpnb-foreign');
  words.scope = 'row';
  const value = cellFor(trans.__('Now'));
  return {
    node: element('tr', '', words, value),
    update: (figure): void => {
      setText(words, figure.words);
      setText(value, figure.value);
    }
  };
}
