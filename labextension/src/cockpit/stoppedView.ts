import type { Actions } from './actions';
import { moment } from './tableParts';
import { button, element, type IView, setText, Views } from '../dom/dom';
import type { ITableState, IHeldState } from '../protocol/curation';
import { trans } from '../translation';

/** What runs for some time, which a curator can end, and charges that run again only if a curator allows it. */
export class StoppedView implements IView<ITableState> {
  readonly node: HTMLElement;
  private readonly _running = element('p', 'dpnb-executed dpnb-foreign');
  private readonly _end: HTMLButtonElement;
  private readonly _held: Views<IHeldState>;
  private _table: ITableState | null = null;

  constructor(private readonly _actions: Actions | null) {
    const title = element('h2', 'dpnb-title', trans.__('Running and stopped'));
    title.id = 'dpnb-stopped-title';
    this._end = button('dpnb-button', trans.__('End…'), () => this._onEnd());
    const list = element('div', 'dpnb-requests');
    this._held = new Views(list, () => heldView(_actions, () => this._table?.name ?? ''));
    this.node = element('section', 'dpnb-block', title, this._running, this._end, list);
    this.node.setAttribute('aria-labelledby', title.id);
  }

  update(table: ITableState): void {
    this._table = table;
    const { running, waiting, held } = table;
    this.node.hidden = running === null && held.length === 0;
    this._running.hidden = running === null;
    this._end.hidden = running === null || this._actions === null;
    if (running) {
      const what = trans.__('%1 runs a %2 for %3 s; %4 wait.', running.analyst, running.call, running.seconds, waiting);
      setText(this._running, what);
      this._end.setAttribute('aria-label', trans.__('End the request of %1', running.analyst));
    }
    this._held.update(held);
  }

  private _onEnd(): void {
    const { _table: table, _actions: actions } = this;
    if (!table?.running || !actions) {
      return;
    }
    const { analyst, number } = table.running;
    void actions.table(table.name, {
      title: trans.__('End the request of %1', analyst),
      what: [
        trans.__('If it was charged, it stays charged, and runs again only if you resume it. The next request runs.')
      ],
      confirm: trans.__('End'),
      isSevere: true,
      act: () => ({ act: 'end', number }),
      done: trans.__('The request of %1 ends.', analyst)
    });
  }
}

function heldView(actions: Actions | null, table: () => string): IView<IHeldState> {
  let held: IHeldState | null = null;
  const who = element('h3', 'dpnb-request-who dpnb-foreign');
  const when = element('p', 'dpnb-quiet');
  const words = element('p', 'dpnb-foreign');
  const resume = button(
    'dpnb-button',
    trans.__('Resume…'),
    () => held && actions && askToResume(actions, table(), held)
  );
  const node = element('article', 'dpnb-request', who, when, words, ...(actions ? [resume] : []));
  return {
    node,
    update: (new_): void => {
      held = new_;
      node.dataset.row = String(held.row);
      setText(who, held.analyst);
      setText(when, trans.__('row %1 of %2: %3', held.row, moment(held.time), held.why));
      setText(words, trans.__('%1; %2', held.words, held.cost));
      resume.setAttribute('aria-label', trans.__('Resume row %1', held.row));
    }
  };
}

function askToResume(actions: Actions, table: string, { row, analyst, words }: IHeldState): void {
  void actions.table(table, {
    title: trans.__('Resume row %1 of %2', row, analyst),
    what: [
      words,
      trans.__('It runs once more when its analyst repeats it, for the same charge. What ended it may happen again.')
    ],
    confirm: trans.__('Resume'),
    act: () => ({ act: 'resume', row }),
    done: trans.__('Row %1 can be answered.', row)
  });
}
