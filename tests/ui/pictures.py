"""Draws the README's pictures: an analyst at work in JupyterLab.  ``python tests/ui/pictures.py``

Needs Chromium.  The pictures go to ``examples/images/``; look at them before committing.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser import REMEDY, find_chromium
from ui.conftest import COCKPIT
from ui.lab import Lab
from ui.server import running_lab

if TYPE_CHECKING:
    from PIL import Image

IMAGES = Path(__file__).resolve().parents[2] / "examples" / "images"
WIDTH, HEIGHT = 1180, 760
GIF_WIDTH = 940
CELLS = [
    ("markdown", "# Is free care used more?\nThe RAND Health Insurance Experiment, under differential privacy."),
    ("code", COCKPIT["load"]),
    ("code", COCKPIT["session"].replace("cockpit.dpnb", "rand-hie.dpnb")),
    ("code", COCKPIT["question"]),
    ("code", "hie['mdvis'].median().release(mu=0.4)"),
    ("code", "visits.best.plot()"),
]
SESSION, QUESTION, GREEDY, PLOT = 2, 3, 4, 5


class Film:
    """Screenshots and how long each is shown."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._frames: list[tuple[Image.Image, int]] = []

    def shoot(self, milliseconds: int, *, keep: str | None = None) -> None:
        """Take a picture; also as a file of its own."""
        from PIL import Image  # only where pictures are drawn

        colours = Image.Quantize.MAXCOVERAGE  # a gauge is few pixels, and must keep its green
        self._lab.wait_until_still()
        taken = Image.open(io.BytesIO(self._lab.page.screenshot())).convert("RGB")
        if keep:
            taken.quantize(255, method=colours).save(IMAGES / f"{keep}.png", optimize=True)
        small = taken.resize((GIF_WIDTH, GIF_WIDTH * HEIGHT // WIDTH), Image.Resampling.LANCZOS)
        self._frames.append((small.quantize(128, method=colours, dither=Image.Dither.NONE), milliseconds))

    def save(self, name: str) -> None:
        """Write the moving picture."""
        first, *others = [frame for frame, _ in self._frames]
        durations = [milliseconds for _, milliseconds in self._frames]
        path = IMAGES / f"{name}.gif"
        first.save(path, save_all=True, append_images=others, duration=durations, loop=0, optimize=True)


def main() -> None:
    """Act it out once."""
    chromium = find_chromium() or sys.exit(REMEDY)
    folder = Path(tempfile.mkdtemp())
    home, root = folder / "home", folder / "root"
    new = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=[new[kind](source) for kind, source in CELLS], metadata=kernel)
    with running_lab(home, root) as url, sync_playwright() as playwright:
        nbformat.write(notebook, root / "free-care.ipynb")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        lab = Lab(browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}), url, root)
        lab.open("free-care.ipynb")
        lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        film = Film(lab)
        act(lab, film)
        film.save("cockpit")
        browser.close()
    shutil.rmtree(folder)


def act(lab: Lab, film: Film) -> None:
    """What the analyst does."""
    for index in range(1, SESSION + 1):
        lab.run(index)
    lab.panel.wait_for()
    cell = lab.page.locator(".jp-Cell")
    cell.nth(SESSION).locator(".jp-OutputArea").scroll_into_view_if_needed()
    film.shoot(2200)
    lab.run(QUESTION)
    picker = cell.nth(QUESTION).locator(".dpnb-picker")
    picker.get_by_role("slider").wait_for()
    picker.scroll_into_view_if_needed()
    film.shoot(2200)
    for _ in range(5):
        picker.get_by_role("slider").press("ArrowRight")
        film.shoot(450)
    film.shoot(1500, keep="picker")
    picker.get_by_role("button", name="Release").click()
    picker.get_by_role("button", name="Refine…").wait_for()
    film.shoot(3000, keep="answer")
    picker.get_by_role("button", name="Refine…").click()
    for _ in range(3):  # it begins at a gain of a quarter
        picker.get_by_role("slider").press("ArrowRight")
    picker.scroll_into_view_if_needed()
    film.shoot(2200)
    picker.get_by_role("button", name="Refine", exact=True).click()
    confirm = picker.get_by_role("button", name="Confirm")  # it takes more than 20% of what is left
    confirm.wait_for()
    film.shoot(1500)
    confirm.click()
    picker.get_by_text("2 observations combined").wait_for()
    film.shoot(3000)
    lab.run(GREEDY)
    refused = cell.nth(GREEDY).locator(".jp-OutputArea")
    refused.scroll_into_view_if_needed()
    film.shoot(2200)
    refused.locator("a").first.click()
    film.shoot(2200, keep="refused")
    lab.run(PLOT)
    cell.nth(PLOT).locator(".js-plotly-plot").wait_for()
    cell.nth(PLOT).locator(".js-plotly-plot").scroll_into_view_if_needed()
    lab.panel.locator(".dpnb-timeline").first.evaluate("node => node.scrollIntoView()")
    film.shoot(4000, keep="timeline")


if __name__ == "__main__":
    main()
