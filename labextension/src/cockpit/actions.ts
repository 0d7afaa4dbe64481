import type { Act } from './acts';
import { ask, type IQuestion } from './dialog';
import type { Service } from './service';
import { trans } from '../translation';

/** A question about an act; the dialog sends the act with what the reader has written. */
export interface IActQuestion extends Omit<IQuestion, 'act'> {
  act(values: Record<string, string>): Act;
  /** What is announced once it is done. */
  done: string;
}

/** A question about an act that may make a token. */
export interface ITokenQuestion {
  /** Do it; returns whose token it is, and the token, if one was made. */
  make(service: Service, values: Record<string, string>): Promise<[name: string, token: string | null]>;
  /** What is announced once it is done. */
  done: string;
}

/** What the views of a table can do; nothing for an auditor. */
export class Actions {
  /** Whose tokens the reader may revoke. */
  revocable: ReadonlySet<string> = new Set();

  constructor(
    private readonly _service: Service,
    private readonly _announce: (text: string) => void,
    private readonly _changed: () => void
  ) {}

  /** Ask once, do it, and say that it is done. */
  async table(table: string, { act, done, ...question }: IActQuestion): Promise<void> {
    await this._ask(question, done, async values => {
      await this._service.act(table, act(values));
    });
  }

  /** Ask once, do something that may make a token, and show the token once. */
  async withToken({ make, done, ...question }: Omit<IQuestion, 'act'> & ITokenQuestion): Promise<void> {
    const made = { name: '', token: '' };
    const isDone = await this._ask(question, done, async values => {
      const [name, token] = await make(this._service, values);
      Object.assign(made, { name, token: token ?? '' });
    });
    const { name, token } = made;
    if (isDone && token !== '') {
      await ask({
        title: trans.__('The new token of %1', name),
        what: [trans.__('It is not shown again. Send it to %1 as you would send a password.', name)],
        fields: [{ name: 'token', label: trans.__('Token'), value: token }],
        confirm: trans.__('I have copied it'),
        act: () => Promise.resolve()
      });
    }
  }

  private async _ask(
    question: Omit<IQuestion, 'act'>,
    done: string,
    act: (values: Record<string, string>) => Promise<void>
  ): Promise<boolean> {
    const isDone = await ask({ ...question, act });
    if (isDone) {
      this._announce(done);
      this._changed();
    }
    return isDone;
  }
}
