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

/** What the views of a table can do; nothing for an auditor. */
export class Actions {
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

  /** Replace the token of a person, and show the new one once. */
  async rotate(name: string): Promise<void> {
    let token = '';
    const isDone = await this._ask(
      {
        title: trans.__('New token for %1', name),
        what: [
          trans.__('The current token of %1 is revoked at once: notebooks and pages that use it are logged out.', name),
          trans.__('The new token is shown once. Send it to %1 as you would send a password.', name)
        ],
        confirm: trans.__('Revoke and make a new token')
      },
      trans.__('The token of %1 is replaced.', name),
      async () => {
        ({ token } = await this._service.rotate(name));
      }
    );
    if (isDone) {
      await ask({
        title: trans.__('The new token of %1', name),
        what: [trans.__('It is not shown again.')],
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
