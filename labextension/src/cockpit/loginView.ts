import type { Service } from './service';
import { button, element, setText } from '../dom/dom';
import type { ILogin } from '../protocol/curation';
import { trans } from '../translation';

/** The page before a login: a field for the token, which is sent once and then emptied. */
export class LoginView {
  readonly node: HTMLElement;
  private readonly _token = element('input', 'dpnb-input');
  private readonly _fault = element('p', 'dpnb-login-fault');

  constructor(
    private readonly _service: Service,
    private readonly _onLogin: (login: ILogin) => void
  ) {
    const label = element('label', 'dpnb-field-label', trans.__('Access token'));
    label.htmlFor = this._token.id = 'dpnb-token';
    const hint = element(
      'p',
      'dpnb-field-hint',
      trans.__('Of a curator, the owner or an auditor; python -m dpnb token new NAME --role curator makes one.')
    );
    hint.id = 'dpnb-token-hint';
    this._token.type = 'password';
    this._token.required = true;
    this._token.autocomplete = 'off';
    this._token.spellcheck = false;
    this._token.setAttribute('aria-describedby', hint.id);
    this._fault.setAttribute('role', 'alert');
    const submit = button('dpnb-button dpnb-mod-primary', trans.__('Log in'));
    submit.type = 'submit';
    const title = element('h1', 'dpnb-login-title', trans.__('dpnb cockpit'));
    const form = element('form', 'dpnb-login', title, label, this._token, hint, this._fault, submit);
    form.addEventListener('submit', event => {
      event.preventDefault();
      void this._submit();
    });
    this.node = element('main', 'dpnb-login-page', form);
  }

  /** Show it, with what has happened before. */
  open(message: string): void {
    setText(this._fault, message);
    this._token.focus();
  }

  private async _submit(): Promise<void> {
    const token = this._token.value.trim();
    this._token.value = '';
    try {
      const login = await this._service.login(token);
      setText(this._fault, '');
      this._onLogin(login);
    } catch (error) {
      this.open(error instanceof TypeError ? trans.__('The service cannot be reached.') : messageOf(error));
    }
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
