import type { IDisposable } from '@lumino/disposable';

import type { PanelRequest } from '../protocol/messages';

/** Milliseconds between two announcements of a visible page; the kernel forgets a page after fifteen minutes. */
export const RENEW_AFTER = 300_000;

/**
 * Tells the kernel whether this page is visible, so that it follows what other kernels charge only for a reader.
 *
 * A page in a hidden tab shows nothing; when it becomes visible, the kernel looks at its ledgers at once.
 */
export class Attention implements IDisposable {
  private _timer: number | undefined;
  private _isDisposed = false;
  private readonly _onVisibility = (): void => this.announce();

  /**
   * @param _page Id of this connection to the kernel.
   * @param _send Sends a message to dpnb in the kernel, if it is loaded.
   */
  constructor(
    private readonly _page: string,
    private readonly _send: (request: PanelRequest) => boolean
  ) {
    document.addEventListener('visibilitychange', this._onVisibility);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Tell the kernel now, and again as long as the page is visible. */
  announce(): void {
    window.clearInterval(this._timer);
    const isVisible = document.visibilityState === 'visible';
    if (this._tell(isVisible) && isVisible) {
      this._timer = window.setInterval(() => this._tell(true), RENEW_AFTER);
    }
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      document.removeEventListener('visibilitychange', this._onVisibility);
      window.clearInterval(this._timer);
      this._tell(false);
    }
  }

  private _tell(isVisible: boolean): boolean {
    return this._send({ method: 'follow_ledgers', page: this._page, is_visible: isVisible });
  }
}
