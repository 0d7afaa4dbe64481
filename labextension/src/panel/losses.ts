import { element, type IView, Views } from '../dom/dom';
import { type ISessionSnapshot, ODOMETERS_PAUSED } from '../protocol/snapshot';
import { GaugeView } from './gauge';
import { NoticeView } from './notice';

/** The reading of the odometer, or why it has stopped. */
export class LossesView implements IView<ISessionSnapshot> {
  private readonly _gauges = element('div', 'dpnb-losses');
  private readonly _views = new Views(this._gauges, () => new GaugeView());
  private readonly _paused = new NoticeView('dpnb-paused', 'status');
  readonly node = element('div', '', this._gauges, this._paused.node);

  update(session: ISessionSnapshot): void {
    // Once odometers have stopped, the accumulator would repeat what is spent under another name.
    const isPaused = session.odometers_paused !== null;
    this._views.update(isPaused ? [] : session.gauges.filter(gauge => gauge.kind === 'loss'));
    this._paused.update({ text: session.odometers_paused, explanation: ODOMETERS_PAUSED });
  }
}
