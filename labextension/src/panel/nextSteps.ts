import { button, element, type IView, setText, Views } from '../dom/dom';
import type { INextStep } from '../protocol/snapshot';
import type { ISessionActions } from './sessionActions';
import { trans } from '../translation';

/** Milliseconds for which a button shows that the text was copied. */
const COPIED_MS = 2000;

/** Suggested next steps in a session that has released nothing; hidden afterwards. */
export class NextSteps implements IView<INextStep[]> {
  readonly node = element('section', 'dpnb-next');
  private readonly _list = element('ol', 'dpnb-next-steps');
  private readonly _steps: Views<INextStep>;

  /** @param actions Copies a line; null omits the buttons. */
  constructor(actions: Pick<ISessionActions, 'copy'> | null) {
    const title = trans.__('What to do next');
    this.node.setAttribute('aria-label', title);
    this.node.append(element('h4', 'dpnb-heading', title), this._list);
    this._steps = new Views(this._list, () => stepItem(actions));
  }

  update(steps: INextStep[]): void {
    this.node.hidden = steps.length === 0;
    this._steps.update(steps);
  }
}

/** Show a line of code that breaks before a method and after an opening parenthesis, and not inside a name. */
function setCode(node: HTMLElement, code: string): void {
  if (node.textContent !== code) {
    const parts = code.split(/(?=\.[A-Za-z_])|(?<=[(,])/u);
    node.replaceChildren(...parts.flatMap((part, index) => (index > 0 ? [element('wbr', ''), part] : [part])));
  }
}

function stepItem(actions: Pick<ISessionActions, 'copy'> | null): IView<INextStep> {
  const text = element('div', 'dpnb-next-text');
  const code = element('code', 'dpnb-next-code');
  const line = element('div', 'dpnb-next-line', code);
  const copy = button('dpnb-next-copy', trans.__('Copy'));
  if (actions) {
    let timer: number | undefined;
    copy.addEventListener('click', () => {
      actions.copy(code.textContent ?? '');
      setText(copy, trans.__('Copied'));
      window.clearTimeout(timer);
      timer = window.setTimeout(() => setText(copy, trans.__('Copy')), COPIED_MS);
    });
    line.append(copy);
  }
  return {
    node: element('li', 'dpnb-next-step', text, line),
    update: (step): void => {
      setText(text, step.text);
      setCode(code, step.code);
      copy.setAttribute('aria-label', trans.__('Copy: %1', step.code));
    }
  };
}
