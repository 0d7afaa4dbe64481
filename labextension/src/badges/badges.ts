import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { Badge, rowsOf } from './badge';
import { type ICurrentCosts, displayedCosts, currentCosts, save } from './badgeMemory';
import type { ILedgerModel } from '../kernel/tokens';
import type { RunningCells } from './runningCells';

/** Class of a cell that has a badge, and CSS property with the number of its lines, which need space below the prompt. */
const BADGED = 'dpnb-mod-badged';
const LINES = '--dpnb-badge-lines';

const NO_CURRENT_COSTS: ICurrentCosts = { sessions: new Map(), cells: new Map() };

/**
 * The cost badges of one notebook, until this is disposed.
 *
 * They show the costs reported by the notebook's kernel and, for other sessions, those saved with the cells.
 */
export class NotebookBadges implements IDisposable {
  private readonly _badges = new WeakMap<Cell, Badge>();
  private _isDisposed = false;

  /** @param _onClick Called with the id of the cell whose badge was clicked. */
  constructor(
    private readonly _panel: NotebookPanel,
    private readonly _model: ILedgerModel,
    private readonly _running: RunningCells,
    private readonly _onClick: (cell: string) => void
  ) {
    const { content, sessionContext } = _panel;
    content.modelChanged.connect(this._onModel, this);
    sessionContext.kernelChanged.connect(this._draw, this);
    _model.kernelChanged.connect(this._onKernel, this);
    _running.ended.connect(this._onEnded, this);
    _panel.disposed.connect(this.dispose, this);
    this._onModel();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.clearData(this);
    if (!this._panel.isDisposed) {
      this._panel.content.widgets.forEach(cell => this._remove(cell));
    }
  }

  private _onModel(): void {
    this._panel.content.model?.cells.changed.connect(this._draw, this);
    this._draw();
  }

  private _onKernel(_: ILedgerModel, kernelId: string): void {
    if (kernelId === this._kernelId) {
      this._draw();
    }
  }

  private _onEnded(_: RunningCells, cell: Cell): void {
    if (this._panel.content.widgets.includes(cell)) {
      this._draw(); // its cost was not saved while it was running
    }
  }

  private get _kernelId(): string | null {
    return this._panel.sessionContext.session?.kernel?.id ?? null;
  }

  private _draw(): void {
    const view = this._kernelId === null ? null : this._model.viewOf(this._kernelId);
    const isLive = view?.kind === 'live';
    const live = isLive ? currentCosts(view.snapshot.sessions) : NO_CURRENT_COSTS;
    const canSave = isLive && this._isWritable;
    this._panel.content.widgets.forEach(cell => this._drawCell(cell, live, canSave));
  }

  private _drawCell(cell: Cell, live: ICurrentCosts, canSave: boolean): void {
    const costs = displayedCosts(cell.model, live);
    if (canSave && !this._running.has(cell)) {
      save(cell.model, costs);
    }
    if (costs.length === 0) {
      this._remove(cell);
      return;
    }
    const badge = this._badges.get(cell) ?? new Badge(() => this._onClick(cell.model.id));
    this._badges.set(cell, badge);
    badge.update(
      costs.map(cost => ({
        ...cost,
        isSaved: !live.sessions.has(cost.session),
        connection: live.sessions.get(cost.session) ?? null
      }))
    );
    cell.addClass(BADGED);
    cell.node.style.setProperty(LINES, String(costs.reduce((rows, cost) => rows + rowsOf(cost), 0)));
    if (badge.node.parentNode !== cell.node) {
      cell.node.append(badge.node); // last: the cell's layout refers to its children by index
    }
  }

  private _remove(cell: Cell): void {
    this._badges.get(cell)?.node.remove();
    this._badges.delete(cell);
    cell.removeClass(BADGED);
    cell.node.style.removeProperty(LINES);
  }

  private get _isWritable(): boolean {
    const { content, context } = this._panel;
    return content.model?.readOnly === false && context.contentsModel?.writable !== false;
  }
}
