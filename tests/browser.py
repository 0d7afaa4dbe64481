"""The system's Chromium, for the tests of JupyterLab and of the documentation, and for what draws or measures."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REMEDY = "Chromium is needed: install it (Debian: apt-get install chromium) or name it in DPNB_CHROMIUM."

# The pages of tests are loaded and left in seconds.  What V8 does for pages that stay costs a tenth of that: collecting
# garbage before there is much, and optimising functions that seem to be called for long.
QUICK_PAGES = "--js-flags=--initial-heap-size=512 --no-opt"


def find_chromium() -> str | None:
    """Path of the system's Chromium, or of the browser that the environment names."""
    names = (os.environ.get("DPNB_CHROMIUM") or "", *NAMES)
    return next((path for name in names if name and (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Chromium.  Without one the tests are skipped at a desk and fail in CI."""
    found = find_chromium()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{REMEDY} CI is set, and CI must not leave them out.")
        pytest.skip(REMEDY)
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[object]:
    """One browser for all tests.  It can reach this machine and nothing else."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", QUICK_PAGES],
        )
        yield browser
        browser.close()
