"""The system's Chromium, for the tests of JupyterLab and of the documentation."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the system's Chromium.  Without one the tests are skipped at a desk and fail in CI."""
    names = (os.environ.get("DPNB_CHROMIUM") or "", *NAMES)
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        rule = "Browser tests need Chromium: install it (Debian: apt-get install chromium) or name it in DPNB_CHROMIUM."
        if os.environ.get("CI"):
            pytest.fail(f"{rule} CI is set, and CI must not leave them out.")
        pytest.skip(rule)
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[object]:
    """One browser for all tests.  It can reach this machine and nothing else."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        yield browser
        browser.close()
