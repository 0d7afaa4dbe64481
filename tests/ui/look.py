"""Draws the pictures "before and after" of `docs/screens.md`.  ``python tests/ui/look.py [suffix]``

Needs Chromium.  The pictures go to ``docs/images/look-*.png``; with a suffix such as ``-before``, which was used in an
older working tree, they are named by it.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser import REMEDY, find_chromium
from ui.lab import Lab
from ui.server import running_lab

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WIDTH = 880
"""Pixels of a picture: two are beside each other on the page."""

TABLE = """%load_ext dpnb
import numpy as np, pandas as pd, dpnb
random = np.random.default_rng(1)
n, year = 3000, np.tile(np.arange(1984, 1989), 3000)
age = np.repeat(random.integers(25, 60, n), 5) + year - 1984
mean = np.exp(0.6 + 0.02 * (age - 40))
table = pd.DataFrame({
    "id": np.repeat(np.arange(n), 5), "year": year, "age": age, "female": np.repeat(random.integers(0, 2, n), 5),
    "educ": np.repeat(np.clip(random.normal(11, 2.3, n), 7, 18).round(1), 5),
    "hhninc": np.clip(random.gamma(4, 0.9, 5 * n), 0, 10).round(3),
    "docvis": np.clip(random.negative_binomial(0.6, 0.6 / (0.6 + mean)), 0, 60),
    "hospvis": random.poisson(0.13, 5 * n),
    "seen": pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(random.integers(0, 9600, 5 * n), unit="h"),
})"""
SESSION = """session = dpnb.Session(
    table, name="health-registry", privacy_unit="id", max_rows_per_unit=5, public_size=15000, version="1",
    budget=dpnb.Budget(epsilon=8.0, delta=1e-6), ledger="health.dpnb",
    schema={
        "year": dpnb.Categories(range(1984, 1989)), "age": dpnb.Bounded(25, 64), "female": dpnb.Categories([0, 1]),
        "educ": dpnb.Bounded(7, 18), "hhninc": dpnb.Bounded(0, 10), "docvis": dpnb.Bounded(0, 60),
        "hospvis": dpnb.Bounded(0, 30), "seen": dpnb.Dates("2024-01-01", "2025-02-10", zone="Europe/Vienna"),
    },
)
df = session.frame
session"""
CELLS = {
    "table": TABLE,
    "first": SESSION,
    "preview": "df.describe()",
    "describe": "df.describe().release(mu=0.25)",
    "share": "(df['docvis'] > 0).groupby(df['year']).mean().release(mu=0.1).plot()",
    "bins": "days = ['2024-01-01', '2024-04-01', '2024-07-01', '2024-10-01', '2025-02-01']\n"
    "dpnb.cut(df['seen'], days).value_counts().release(mu=0.1)",
    "box": "df.boxplot('age', by='year').release(mu=0.4).plot()",
    "heat": "df.plot.hexbin('age', 'hhninc').release(mu=0.3).plot()",
    "intervals": "df.groupby('year')['docvis'].mean().release(mu=0.4)",
    "coefficients": "df.regress('docvis ~ age + female + educ').release(mu=0.4).plot()",
    "refusal": "df['hhninc'].median().release(mu=5)",
}
WIDE = ("first", "preview", "describe")
"""Also drawn at the second size."""

SIZES = {"": (1280, 800), "-wide": (1920, 1080)}
THEMES = ("JupyterLab Light", "JupyterLab Dark")


def main() -> None:
    """Act it out once at each size."""
    chromium = find_chromium() or sys.exit(REMEDY)
    folder = Path(tempfile.mkdtemp())
    home, root = folder / "home", folder / "root"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    with running_lab(home, root) as url, sync_playwright() as playwright:
        notebook = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for suffix, (width, height) in SIZES.items():
            name = f"at{suffix}/study.ipynb"  # a ledger for each
            (root / name).parent.mkdir()
            nbformat.write(notebook, root / name)
            page = browser.new_page(viewport={"width": width, "height": height})
            lab = Lab(page, url, root)
            lab.open(name)
            page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
            act(lab, suffix)
            page.close()
        browser.close()
    shutil.rmtree(folder)


def act(lab: Lab, suffix: str) -> None:
    """Run the cells, and keep a picture of each."""
    for index, name in enumerate(CELLS):
        lab.run(index)
        if name == "table" or (suffix and name not in WIDE):
            continue
        cell = lab.page.locator(".jp-Cell").nth(index)
        if ".plot()" in CELLS[name]:
            cell.locator(".js-plotly-plot").wait_for()
        seen = []
        for theme in THEMES:
            lab.set_theme(theme)
            cell.evaluate("node => node.scrollIntoView({ block: 'start' })")
            lab.wait_until_still()
            seen.append(lab.page.screenshot())
        keep(*seen, f"look-{name}{suffix}{''.join(sys.argv[1:])}")


def keep(light: bytes, dark: bytes, name: str) -> None:
    """Keep both halves of a page, the left one in the light theme, small and with few colours."""
    from PIL import Image  # only where pictures are drawn

    whole, other = (Image.open(io.BytesIO(seen)).convert("RGB") for seen in (light, dark))
    right = (whole.width // 2, 0, whole.width, whole.height)
    whole.paste(other.crop(right), right[:2])
    small = whole.resize((WIDTH, round(whole.height * WIDTH / whole.width)), Image.Resampling.LANCZOS)
    few = small.quantize(64, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)  # it keeps the gauge's green
    few.save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
