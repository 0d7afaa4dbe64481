import { element, type IView, setText, Views } from '../dom/dom';
import { Fold } from '../dom/fold';
import { type IExplanationText, type ISessionSnapshot, EXCLUDED_UNITS, ODOMETERS_PAUSED } from '../protocol/snapshot';
import { explanationNodeId } from './explanationLink';
import { trans } from '../translation';

/** Milliseconds for which a requested explanation is highlighted. */
export const HIGHLIGHT_MS = 2500;

/** One explanation, and whether something in the panel refers to it. */
type Entry = IExplanationText & { isUsed: boolean };

/** The explanations of all refusals and warnings. */
export class ExplanationsView {
  readonly fold = new Fold('dpnb-explanations', trans.__('What refusals and warnings mean'));
  private readonly _missing = element(
    'p',
    'dpnb-explanations-missing',
    trans.__('The kernel has not sent explanations yet: it sends them with its first dpnb session.')
  );
  private readonly _list = element('dl', 'dpnb-explanation-list');
  private readonly _entries = new Views(this._list, explanationEntry);
  private _shown = new Set<string>();
  private _highlightTimer: number | undefined;

  constructor() {
    this.fold.body.append(this._missing, this._list);
    this.node.hidden = true;
  }

  get node(): HTMLElement {
    return this.fold.node;
  }

  /** @param explanations null if the kernel has not sent any; the list is then hidden until it is requested. */
  update(explanations: IExplanationText[] | null, sessions: ISessionSnapshot[]): void {
    const used = new Set(sessions.flatMap(linkedExplanations));
    const entries = (explanations ?? []).map(entry => ({ ...entry, isUsed: used.has(entry.id) }));
    this._shown = new Set(entries.map(entry => entry.id));
    this._missing.hidden = entries.length > 0;
    this._list.hidden = entries.length === 0;
    this.node.hidden = entries.length === 0 && !this.fold.node.open;
    this._entries.update(entries);
  }

  /** Unfold, and move the focus to an explanation; to the list if it does not exist, or `explanation` is null. */
  show(explanation: string | null): void {
    this.node.hidden = false;
    this.fold.open();
    const node =
      explanation !== null && this._shown.has(explanation) ? this._find(explanation) : this.fold.node.firstElementChild;
    if (!(node instanceof HTMLElement)) {
      return;
    }
    node.scrollIntoView({ block: 'nearest' });
    node.focus({ preventScroll: true });
    this._highlight(node);
  }

  private _find(explanation: string): HTMLElement | undefined {
    const entries = this._list.querySelectorAll<HTMLElement>('.dpnb-explanation');
    return [...entries].find(entry => entry.dataset.explanation === explanation);
  }

  private _highlight(node: HTMLElement): void {
    window.clearTimeout(this._highlightTimer);
    this.node
      .querySelectorAll('.dpnb-mod-highlighted')
      .forEach(other => other.classList.remove('dpnb-mod-highlighted'));
    node.classList.add('dpnb-mod-highlighted');
    this._highlightTimer = window.setTimeout(() => node.classList.remove('dpnb-mod-highlighted'), HIGHLIGHT_MS);
  }
}

/** Ids of the explanations that a session links to. */
function linkedExplanations(session: ISessionSnapshot): (string | null)[] {
  const states = [
    session.odometers_paused === null ? null : ODOMETERS_PAUSED,
    session.participation === null ? null : EXCLUDED_UNITS
  ];
  return [session.notice_explanation, ...states, ...session.refusals.map(refusal => refusal.explanation)];
}

function explanationEntry(): IView<Entry> {
  const title = element('span', 'dpnb-explanation-title');
  const used = element('span', 'dpnb-explanation-used', trans.__('shown above'));
  const text = element('dd', 'dpnb-explanation-text');
  const node = element('div', 'dpnb-explanation', element('dt', '', title, ' ', used), text);
  node.tabIndex = -1; // so that a link can move the focus to it
  return {
    node,
    update: (entry): void => {
      node.id = explanationNodeId(entry.id);
      node.dataset.explanation = entry.id;
      node.classList.toggle('dpnb-mod-used', entry.isUsed);
      used.hidden = !entry.isUsed;
      setText(title, entry.title);
      setText(text, entry.text);
    }
  };
}
