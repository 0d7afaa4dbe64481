import { element, setText } from '../dom/dom';
import type { IGauge } from '../protocol/snapshot';

const SVG = 'http://www.w3.org/2000/svg';
/** Half a circle, open at the bottom. */
const ARC = 'M 8 56 A 48 48 0 0 1 104 56';

/** The variable parts of every gauge, by its host element. */
const drawn = new WeakMap<HTMLElement, IParts>();

type Level = 'good' | 'low' | 'out';

interface IParts {
  fill: SVGElement;
  text: HTMLElement;
  label: HTMLElement;
}

/**
 * Draw a gauge into a host element, or update the existing one.
 *
 * For a screen reader the host is one meter, and its children are presentational.
 */
export function drawGauge(host: HTMLElement, gauge: IGauge): void {
  const { fill, text, label } = drawn.get(host) ?? build(host);
  host.dataset.gauge = gauge.id;
  host.dataset.level = level(gauge);
  host.title = gauge.description;
  host.setAttribute('aria-label', gauge.label);
  host.setAttribute('aria-valuenow', String(gauge.value));
  host.setAttribute('aria-valuetext', gauge.text);
  fill.setAttribute('stroke-dasharray', `${100 * gauge.value} 200`);
  // A stroke of length zero would show its round cap.
  fill.setAttribute('visibility', gauge.value > 0 ? 'visible' : 'hidden');
  setText(text, gauge.text);
  setText(label, gauge.label);
}

function build(host: HTMLElement): IParts {
  host.classList.add('dpnb-gauge');
  host.setAttribute('role', 'meter');
  host.setAttribute('aria-valuemin', '0');
  host.setAttribute('aria-valuemax', '1');
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 112 64');
  svg.setAttribute('aria-hidden', 'true');
  const parts = {
    fill: arc('dpnb-gauge-fill'),
    text: element('div', 'dpnb-gauge-text'),
    label: element('div', 'dpnb-gauge-label')
  };
  svg.append(arc('dpnb-gauge-track'), parts.fill);
  host.replaceChildren(svg, parts.text, parts.label);
  drawn.set(host, parts);
  return parts;
}

function arc(className: string): SVGPathElement {
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('class', className);
  path.setAttribute('d', ARC);
  path.setAttribute('pathLength', '100');
  return path;
}

function level({ kind, value }: IGauge): Level | 'plain' {
  switch (kind) {
    case 'remaining':
      return levelOf(value);
    case 'used':
      return levelOf(1 - value);
    default:
      return 'plain';
  }
}

/** Level of the remaining share, for its colour; the text next to it states the same without colour. */
export function levelOf(left: number): Level {
  return left > 0.25 ? 'good' : left > 0.05 ? 'low' : 'out';
}
