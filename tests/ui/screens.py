"""Draws the pictures of `docs/screens.md`: the panel in several states.  ``python tests/ui/screens.py``

Needs Chromium.  The pictures go to ``docs/images/``, named after the state; look at them before
committing.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser import REMEDY, find_chromium
from ui.conftest import COCKPIT
from ui.lab import Lab
from ui.server import running_lab

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
CELLS = {
    "load": COCKPIT["load"],
    "session": COCKPIT["session"],
    "queries": "hie.groupby('coins')['mdvis'].mean().release(mu=0.06)\n"
    "hie['mdvis'].sum().release(mu=0.05)\n"
    "hie[hie['mdvis'] > 2].count().release(mu=0.03)\n"
    "hie['mdvis'].median().release(mu=0.08)",
    "rest": "for visits in range(6):\n    hie[hie['mdvis'] > visits].count().release(share=0.4)\n"
    "hie.count().release(share=1)",
    "mechanisms": 'other = dpnb.Session(table, name="by-plan", budget=dpnb.Budget(epsilon=2.0, delta=1e-6),\n'
    '    schema={"mdvis": dpnb.Bounded(0, 10), "coins": dpnb.Categories([0, 25, 50, 95, 100])},\n'
    '    ledger=":memory:")\n'
    'plans = other.partition("coins", name="plans", max_parts_per_unit=1)\n'
    "for coins in (0, 25, 50):\n    plans[coins].frame.count().release(mu=0.04 + coins / 1000)\n"
    'other.delegate(mu=0.05, name="colleague")\n'
    'other.above_threshold(500, mu=0.06, max_queries=20, name="many")\n'
    "other.frame.count().release(mu=0.02)",
}
NUMBER = {name: index for index, name in enumerate(CELLS)}


class Camera:
    """Takes pictures with few colours."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def page(self, name: str) -> None:
        """Keep the whole page."""
        self._keep(name, self._shoot(whole=True))

    def panel(self, name: str) -> None:
        """Keep the part of the panel that is seen without scrolling."""
        self._keep(name, self._shoot(whole=False))

    def _shoot(self, *, whole: bool) -> bytes:
        self._lab.wait_until_still()
        return self._lab.page.screenshot() if whole else self._lab.panel.screenshot()

    def _keep(self, name: str, picture: bytes) -> None:
        from PIL import Image  # only where pictures are drawn

        colours = Image.open(io.BytesIO(picture)).convert("RGB").quantize(96, dither=Image.Dither.NONE)
        colours.save(IMAGES / f"panel-{name}.png", optimize=True)


def main() -> None:
    """Act it out once."""
    IMAGES.mkdir(exist_ok=True)
    chromium = find_chromium() or sys.exit(REMEDY)
    folder = Path(tempfile.mkdtemp())
    home, root = folder / "home", folder / "root"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    with running_lab(home, root) as url, sync_playwright() as playwright:
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), root / "free-care.ipynb")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        lab = Lab(browser.new_page(viewport={"width": 1280, "height": 800}), url, root)
        lab.open("free-care.ipynb")
        lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        act(lab, Camera(lab))
        browser.close()
    shutil.rmtree(folder)


def act(lab: Lab, camera: Camera) -> None:
    """What is done before each picture."""
    for name in ("load", "session"):
        lab.run(NUMBER[name])
    lab.panel.wait_for()
    lab.page.locator(".jp-Cell").nth(NUMBER["session"]).locator(".jp-OutputArea").scroll_into_view_if_needed()
    camera.panel("start")
    lab.run(NUMBER["queries"])
    camera.page("queries")
    lab.set_theme("JupyterLab Dark")
    camera.panel("dark")
    lab.set_theme("JupyterLab Light")
    term = lab.panel.locator(".dpnb-term:visible", has_text="Budget left").first
    if term.count():
        term.hover()
        camera.panel("term")
        lab.page.mouse.move(0, 0)
    lab.run(NUMBER["rest"])
    expect(lab.panel_gauge("headroom")).to_have_attribute("aria-valuetext", "0.0% left")
    camera.panel("spent")
    lab.run(NUMBER["mechanisms"])
    expect(lab.panel.locator(".dpnb-mechanism")).to_have_count(3)
    camera.panel("mechanisms")
    lab.page.set_viewport_size({"width": 400, "height": 800})
    lab.page.wait_for_function("document.documentElement.clientWidth === 400")
    camera.page("phone")


if __name__ == "__main__":
    main()
