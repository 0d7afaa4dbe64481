import { button, element, setText } from '../dom/dom';
import { trans } from '../translation';

/** One field of a dialog. */
export interface IField {
  name: string;
  label: string;
  /** Below the field: what it means. */
  hint?: string;
  kind?: 'text' | 'long' | 'time';
  /** The values to choose from, with their labels; a text field without them. */
  choices?: [value: string, label: string][];
  /** What is filled in; by default the first of the choices, or nothing. */
  value?: string;
  isRequired?: boolean;
  /** The value that another field, which has choices, must have for this one to be asked. */
  when?: [field: string, value: string];
}

/** What a dialog asks. */
export interface IQuestion {
  title: string;
  /** What will happen: paragraphs in words. */
  what: string[];
  fields?: IField[];
  /** The label of the button that does it. */
  confirm: string;
  /** Whether it takes something away from somebody. */
  isSevere?: boolean;
  /** Do it; if this fails, the dialog shows why and stays. */
  act(values: Record<string, string>): Promise<void>;
}

/** Characters of a reason, as in the service. */
const LONGEST = 500;

/**
 * Ask once before an act, in a modal dialog; the browser keeps the focus inside, and gives it back at the end.
 *
 * @returns Whether it was done.
 */
export async function ask(question: IQuestion): Promise<boolean> {
  const title = element('h2', 'dpnb-dialog-title', question.title);
  title.id = 'dpnb-dialog-title';
  const what = element('div', 'dpnb-dialog-what', ...question.what.map(text => element('p', '', text)));
  what.id = 'dpnb-dialog-what';
  const inputs = (question.fields ?? []).map(fieldOf);
  const fault = element('p', 'dpnb-dialog-fault');
  fault.setAttribute('role', 'alert');
  const cancel = button('dpnb-button', trans.__('Cancel'), () => dialog.close());
  const confirm = button(`dpnb-button dpnb-mod-${question.isSevere ? 'severe' : 'primary'}`, question.confirm);
  confirm.type = 'submit';
  const form = element('form', '', title, what, ...inputs.map(({ node }) => node), fault);
  const showAsked = (): void => {
    const values = new Map(inputs.map(({ name, read }) => [name, read()]));
    inputs.forEach(({ node, input, when }) => {
      node.hidden = input.disabled = when !== undefined && values.get(when[0]) !== when[1];
    });
  };
  showAsked();
  form.addEventListener('input', showAsked);
  form.append(element('div', 'dpnb-dialog-buttons', cancel, confirm));
  const dialog = element('dialog', 'dpnb-dialog', form);
  dialog.setAttribute('aria-labelledby', title.id);
  dialog.setAttribute('aria-describedby', what.id);
  document.body.append(dialog);
  let isDone = false;
  let acting = Promise.resolve();
  form.addEventListener('submit', event => {
    event.preventDefault();
    if (confirm.getAttribute('aria-disabled') === 'true') {
      return; // a second click while the first is on its way
    }
    confirm.setAttribute('aria-disabled', 'true');
    setText(fault, '');
    acting = question
      .act(Object.fromEntries(inputs.map(({ name, read }) => [name, read()])))
      .then(() => {
        isDone = true;
        dialog.close();
      })
      .catch((error: unknown) => setText(fault, error instanceof Error ? error.message : String(error)))
      .finally(() => confirm.removeAttribute('aria-disabled'));
  });
  dialog.showModal();
  (inputs[0]?.input ?? cancel).focus(); // never the button that acts: Enter alone must not do it
  await new Promise(resolve => dialog.addEventListener('close', resolve, { once: true }));
  dialog.remove();
  await acting; // closed meanwhile: a token that it makes is shown nevertheless
  return isDone;
}

interface IInput {
  name: string;
  node: HTMLElement;
  input: HTMLSelectElement | HTMLTextAreaElement | HTMLInputElement;
  when: IField['when'];
  read(): string;
}

function inputOf(
  kind: string,
  choices: [value: string, label: string][] | undefined
): HTMLSelectElement | HTMLTextAreaElement | HTMLInputElement {
  if (choices) {
    const options = choices.map(([value, label]) => {
      const option = element('option', '', label);
      option.value = value;
      return option;
    });
    return element('select', 'dpnb-input', ...options);
  }
  const input = kind === 'long' ? element('textarea', 'dpnb-input') : element('input', 'dpnb-input');
  if (input instanceof HTMLInputElement) {
    input.type = kind === 'time' ? 'datetime-local' : 'text';
    input.autocomplete = 'off';
  } else {
    input.rows = 2;
  }
  if (kind !== 'time') {
    input.maxLength = LONGEST;
  }
  return input;
}

function fieldOf(field: IField): IInput {
  const { name, label, hint, kind = 'text', choices, isRequired = false, when } = field;
  const { value = choices?.[0]?.[0] ?? '' } = field;
  const id = `dpnb-field-${name}`;
  const input = inputOf(kind, choices);
  input.id = id;
  input.value = value;
  input.required = isRequired;
  const caption = element('label', 'dpnb-field-label', label);
  caption.htmlFor = id;
  const node = element('div', 'dpnb-field', caption, input);
  if (hint !== undefined) {
    const line = element('p', 'dpnb-field-hint', hint);
    line.id = `${id}-hint`;
    input.setAttribute('aria-describedby', line.id);
    node.append(line);
  }
  return { name, node, input, when, read: () => input.value.trim() };
}
