import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Panel, Widget } from '@lumino/widgets';

import { renderGauges } from './gaugesWidget';
import { isFields, isText } from '../protocol/guards';
import type { LiveModel } from './liveModel';
import type { LiveWidgets } from './liveWidgets';
import { renderPicker } from '../picker/pickerWidget';

/** MIME type of an output with the id and the view of a widget; other front ends use the standard widget type. */
export const LIVE = 'application/vnd.dpnb.widget+json';

/** Preferred over `text/html` and over Jupyter's view of widgets, which has rank -10. */
const RANK = -20;

type Render = (props: { model: LiveModel; el: HTMLElement }) => () => void;

const VIEWS: Partial<Record<string, Render>> = {
  gauges: renderGauges as unknown as Render,
  picker: renderPicker as unknown as Render
};

/** An output with one of dpnb's widgets: static until the kernel has sent its state, then its live view. */
export class LiveOutput extends Panel implements IRenderMime.IRenderer {
  private _model: LiveModel | null = null;
  private _close: (() => void) | null = null;
  private _render: Render | undefined;

  constructor(
    private readonly _widgets: LiveWidgets,
    private readonly _rendermime: IRenderMimeRegistry
  ) {
    super();
    this.addClass('dpnb-output');
  }

  /** Called again whenever the kernel replaces the output. */
  async renderModel(output: IRenderMime.IMimeModel): Promise<void> {
    const reference = output.data[LIVE];
    const [id, view] = isFields(reference) ? [reference.model_id, reference.view] : [];
    if (this._close && this._model?.id === id) {
      return; // the view follows its model; drawing it again would discard the reader's input
    }
    this._clear();
    this._render = isText(view) ? VIEWS[view] : undefined;
    this._model = this._render && isText(id) ? this._widgets.model(id) : null;
    if (this._model?.kernel) {
      this._showView();
      return;
    }
    this._model?.on('kernelAttached', this._showView);
    await this._showStatic(output);
  }

  dispose(): void {
    if (!this.isDisposed) {
      this._clear();
      super.dispose();
    }
  }

  private _clear(): void {
    this._model?.off('kernelAttached', this._showView);
    this._close?.();
    this._close = null;
    this._model = null;
    [...this.widgets].forEach(widget => widget.dispose());
  }

  private readonly _showView = (): void => {
    const model = this._model;
    if (!model || !this._render) {
      return;
    }
    this._clear();
    this._model = model;
    const view = new Widget();
    this.addWidget(view);
    this._close = this._render({ model, el: view.node });
  };

  private async _showStatic(output: IRenderMime.IMimeModel): Promise<void> {
    const renderer = this._rendermime.createRenderer('text/html');
    this.addWidget(renderer); // before it is drawn: the live view may replace it in the meantime
    await renderer.renderModel(output);
  }
}

/**
 * Show dpnb's widgets in every output of the page.
 *
 * They are safe in an output that the reader has not trusted, as all are that a server has written: the live view shows
 * only what the kernel sends, and the static one is HTML, which JupyterLab sanitises.
 */
export function addLiveOutputs(rendermime: IRenderMimeRegistry, widgets: LiveWidgets): void {
  const createRenderer = (): LiveOutput => new LiveOutput(widgets, rendermime);
  rendermime.addFactory({ safe: true, mimeTypes: [LIVE], createRenderer }, RANK);
}
