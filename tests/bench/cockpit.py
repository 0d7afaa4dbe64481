"""How quickly the page follows: from a release to the changed gauge, and from the slider to its figures.

The first beside what any notebook could do at best in the same run: a bare ipywidgets label whose value is set.
Needs Chromium.  ``python tests/bench/cockpit.py``
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser import REMEDY, find_chromium
from ui.conftest import CELL, COCKPIT
from ui.lab import Lab
from ui.server import running_lab

TIMES = 40

# Wall-clock time at which something on the page last changed: kernel and browser share the machine's clock.
WATCH = """([selector, attribute]) => {
  const node = [...document.querySelectorAll(selector)].at(-1);
  window.dpnbBench = [];
  new MutationObserver(() => window.dpnbBench.push(performance.timeOrigin + performance.now()))
    .observe(node, { attributes: true, attributeFilter: attribute ? [attribute] : undefined, childList: true,
                     subtree: true, characterData: true });
}"""

# From the slider's event to the frame in which the words have changed.
SLIDE = """async times => {
  const slider = document.querySelector('.dpnb-picker-slider');
  const words = document.querySelector('.dpnb-picker-error');
  const frame = () => new Promise(done => requestAnimationFrame(() => done(performance.now())));
  const took = [];
  for (let i = 0; i < times; i += 1) {
    await frame();
    const before = words.textContent;
    const start = performance.now();
    slider.value = String((i * 7) % Number(slider.max));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    if (words.textContent === before) { continue; }
    took.push([performance.now() - start, (await frame()) - start]);
  }
  return took;
}"""


def main() -> None:
    """Measure once and print a table."""
    chromium = find_chromium() or sys.exit(REMEDY)
    folder = Path(tempfile.mkdtemp())
    home, root = folder / "home", folder / "root"
    cells = [nbformat.v4.new_code_cell(source) for source in COCKPIT.values()]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    with running_lab(home, root) as url, sync_playwright() as playwright:
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), root / "cockpit.ipynb")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        lab = Lab(browser.new_page(viewport={"width": 1400, "height": 900}), url, root)
        lab.open("cockpit.ipynb")
        for name in ("load", "session"):
            lab.run(CELL[name])
        gauge = _gauge(lab)
        label = _label(lab)
        slide = _slide(lab)
        browser.close()
    shutil.rmtree(folder)
    print(f"{'':<58}{'median':>10}{'worst':>10}")
    _row("release() called -> gauge in the panel changed, ms", gauge)
    _row("  of which until release() returned, ms", [returned for _, returned in gauge], single=True)
    _row("bare ipywidgets label set -> changed on the page, ms", label)
    print(f"{'ratio of the medians':<58}{_median(gauge) / _median(label):>10.1f}")
    _row("slider moved -> words changed, ms", slide)
    _row("slider moved -> next frame drawn with them, ms", [drawn for _, drawn in slide], single=True)


def _gauge(lab: Lab) -> list[tuple[float, float]]:
    """Milliseconds from each release to the changed gauge, and to its return."""
    lab.page.evaluate(WATCH, [".dpnb-panel [data-gauge=headroom]", "aria-valuenow"])
    return _timed(lab, "hie[hie['mdvis'] > {i} / 10].count().release(mu=0.01)")


def _label(lab: Lab) -> list[tuple[float, float]]:
    """The same for a label that shows a number."""
    lab.write(CELL["spare"], "import ipywidgets\nlabel = ipywidgets.Label('start'); label.add_class('bench')\nlabel")
    lab.run(CELL["spare"])
    lab.page.wait_for_selector(".bench")
    lab.page.evaluate(WATCH, [".bench", None])
    return _timed(lab, "label.value = str({i})")


def _timed(lab: Lab, code: str) -> list[tuple[float, float]]:
    took = []
    for i in range(TIMES):
        lab.page.evaluate("() => { window.dpnbBench.length = 0; }")
        start, end = lab.value(
            f"[__import__('time').time(), exec({code.format(i=i)!r}), __import__('time').time()][::2]"
        )  # type: ignore[misc]
        lab.page.wait_for_function("window.dpnbBench.length > 0")
        changed = float(lab.page.evaluate("window.dpnbBench[0]"))
        took.append((changed - 1000 * start, 1000 * (end - start)))
        lab.page.wait_for_timeout(150)  # the throttle lets one message at a time through
    return took


def _slide(lab: Lab) -> list[tuple[float, float]]:
    lab.run(CELL["question"])
    lab.page.wait_for_selector(".dpnb-picker-slider")
    return [(words, frame) for words, frame in lab.page.evaluate(SLIDE, TIMES)]


def _median(took: list[tuple[float, float]]) -> float:
    return statistics.median(first for first, _ in took)


def _row(name: str, took: list, *, single: bool = False) -> None:
    figures = took if single else [first for first, _ in took]
    print(f"{name:<58}{statistics.median(figures):>10.1f}{max(figures):>10.1f}")


if __name__ == "__main__":
    main()
