import { element, setText } from './dom';
import type { IGauge } from './snapshot';

const SVG = 'http://www.w3.org/2000/svg';
/** Half a circle, open at the bottom. */
const ARC = 'M 8 56 A 48 48 0 0 1 104 56';

/**
 * Draw a gauge into a host element, or bring the one that is there up to date.
 *
 * To a screen reader the host is one meter; everything inside it is presentation.
 */
export function drawGauge(host: HTMLElement, gauge: IGauge): void {
  if (!host.querySelector('svg')) {
    build(host);
  }
  host.dataset.gauge = gauge.id;
  host.dataset.level = level(gauge);
  host.title = gauge.description;
  host.setAttribute('aria-label', gauge.label);
  host.setAttribute('aria-valuenow', String(gauge.value));
  host.setAttribute('aria-valuetext', gauge.text);
  const [fill] = host.getElementsByClassName('dpnb-gauge-fill');
  fill.setAttribute('stroke-dasharray', `${100 * gauge.value} 200`);
  // A stroke of length zero still shows its round cap.
  fill.setAttribute('visibility', gauge.value > 0 ? 'visible' : 'hidden');
  const [label] = host.getElementsByClassName('dpnb-gauge-label');
  const [text] = host.getElementsByClassName('dpnb-gauge-text');
  setText(label, gauge.label);
  setText(text, gauge.text);
}

function build(host: HTMLElement): void {
  host.classList.add('dpnb-gauge');
  host.setAttribute('role', 'meter');
  host.setAttribute('aria-valuemin', '0');
  host.setAttribute('aria-valuemax', '1');
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 112 64');
  svg.setAttribute('aria-hidden', 'true');
  svg.append(arc('dpnb-gauge-track'), arc('dpnb-gauge-fill'));
  host.replaceChildren(svg, element('div', 'dpnb-gauge-text'), element('div', 'dpnb-gauge-label'));
}

function arc(className: string): SVGPathElement {
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('class', className);
  path.setAttribute('d', ARC);
  path.setAttribute('pathLength', '100');
  return path;
}

/** How alarming the gauge should look; the words beside it say the same without colour. */
function level(gauge: IGauge): 'plain' | 'good' | 'low' | 'out' {
  if (gauge.kind !== 'remaining' && gauge.kind !== 'used') {
    return 'plain';
  }
  const left = gauge.kind === 'remaining' ? gauge.value : 1 - gauge.value;
  return left > 0.25 ? 'good' : left > 0.05 ? 'low' : 'out';
}
