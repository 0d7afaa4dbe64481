import { Refused, type Service } from './service';

/** Milliseconds without a word of the service after which the page counts as out of date. */
export const SILENCE_MS = 15_000;

/** Milliseconds before the next attempt, which double up to the second number. */
export const RETRY_MS = [1000, 15_000] as const;

/** What a follower tells. */
export interface IFollowed {
  /** Something has changed, or may have. */
  changed(): void;
  /** Whether changes are told; called only when that changes. */
  live(isLive: boolean): void;
  /** The login has ended. */
  ended(): void;
}

/** Follows the events of the service, and connects again until it is stopped. */
export class Follower {
  private readonly _stop = new AbortController();
  private _current = new AbortController();
  private _isLive: boolean | null = null;
  private _silence: number | undefined;

  constructor(
    private readonly _service: Service,
    private readonly _followed: IFollowed
  ) {
    void this._run();
  }

  stop(): void {
    this._stop.abort();
    this._current.abort();
    window.clearTimeout(this._silence);
  }

  private _isOver(): boolean {
    return this._stop.signal.aborted;
  }

  private async _run(): Promise<void> {
    let delay: number = RETRY_MS[0];
    while (!this._isOver()) {
      try {
        this._current = new AbortController();
        this._listen();
        for await (const text of this._service.events(this._current.signal)) {
          delay = RETRY_MS[0];
          this._heard(text);
        }
      } catch (error) {
        if (error instanceof Refused && error.isLogin) {
          this.stop();
          this._followed.ended();
          return;
        }
      }
      if (!this._isOver()) {
        this._tell(false);
        await new Promise(resolve => window.setTimeout(resolve, delay));
        delay = Math.min(2 * delay, RETRY_MS[1]);
      }
    }
  }

  private _heard(text: string): void {
    this._listen();
    this._tell(true);
    if (text.includes('data:')) {
      this._followed.changed();
    }
  }

  /** Wait for the next word, and give the connection up without one. */
  private _listen(): void {
    window.clearTimeout(this._silence);
    this._silence = window.setTimeout(() => this._current.abort(), SILENCE_MS);
  }

  private _tell(isLive: boolean): void {
    if (isLive !== this._isLive) {
      this._isLive = isLive;
      this._followed.live(isLive);
    }
  }
}
