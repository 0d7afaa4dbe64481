"""Draws the pictures of `docs/how-to/cockpit.md`: the curator's page.  ``python tests/ui/cockpit_pictures.py``

Needs Chromium.  The pictures go to ``docs/images/``; look at them before committing.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser import REMEDY, find_chromium
from ui.curator import PARTS, Service, login

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
WHY = "The annual report needs the number of visits with an error below 20; the first count is too noisy for it."


def main() -> None:
    """Act it out once."""
    chromium = find_chromium() or sys.exit(REMEDY)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        service = Service(Path(folder), visits=PARTS, claims="")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        ana, bob, eve = (
            service.token(name, role) for name, role in (("ana", "analyst"), ("bob", "analyst"), ("eve", "curator"))
        )
        with service.served():
            service.ask(
                ana, "visits", lambda df: df.count().release(mu=0.05), lambda df: df["age"].mean().release(mu=0.1)
            )
            service.ask(bob, "visits", lambda df: df[df["age"] > 40].count().release(mu=0.15))
            service.request(ana, "visits", WHY)
            for name, scheme, width in (
                ("cockpit", "light", 1180),
                ("cockpit-dark", "dark", 1180),
                ("cockpit-phone", "light", 360),
            ):
                page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
                login(page, service, eve)
                page.get_by_role("article").wait_for()
                page.get_by_text("mean of age").last.wait_for()
                keep(page, name)
                page.close()
            page = browser.new_page(viewport={"width": 1180, "height": 620})
            login(page, service, eve)
            page.get_by_role("button", name="Approve in part…").click()
            keep(page, "cockpit-approve")
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Hand over the part of cleo").click()
            page.get_by_label("To", exact=True).fill("dora")
            keep(page, "cockpit-hand-over")
        browser.close()


def keep(page: Page, name: str) -> None:
    """A picture with few colours of what is seen without scrolling."""
    from PIL import Image  # only where pictures are drawn

    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    taken.quantize(128, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
