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

/** Whose token was made; empty if the person came without a new one. */
export interface IMadeToken {
  name: string;
  token: string;
}

/** A question about an act that may make tokens. */
export interface ITokenQuestion {
  /** Do it, and add whose tokens were made to `made`, which has those of an earlier attempt. */
  make(service: Service, values: Record<string, string>, made: IMadeToken[]): Promise<void>;
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

  /** Ask once, do something that may make tokens, and show each token once, also if a later step is refused. */
  async withToken({ make, done, ...question }: Omit<IQuestion, 'act'> & ITokenQuestion): Promise<void> {
    const made: IMadeToken[] = [];
    const isDone = await this._ask(question, done, values => make(this._service, values, made));
    if (!isDone && made.length > 0) {
      this._changed();
    }
    const tokens = made.filter(({ token }) => token !== '');
    const names = tokens.map(({ name }) => name).join(', ');
    if (tokens.length > 0) {
      await ask({
        title: trans._n('The new token of %2', 'The new tokens of %2', tokens.length, names),
        what: [
          tokens.length === 1
            ? trans.__('It is not shown again. Send it to %1 as you would send a password.', names)
            : trans.__('They are not shown again. Send each to its person alone, as you would send a password.')
        ],
        fields: tokens.map(({ name, token }, index) => ({
          name: index === 0 ? 'token' : `token-${index}`,
          label: tokens.length === 1 ? trans.__('Token') : trans.__('Token of %1', name),
          value: token
        })),
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
