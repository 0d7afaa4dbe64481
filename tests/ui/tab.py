"""One browser tab in which one test after another loads its page."""

from __future__ import annotations

from playwright.sync_api import Browser, BrowserContext, Error, Page


class Tab:
    """Kept from test to test: JupyterLab's scripts, once compiled, load in half the time there.

    Each test loads the page again and finds an empty storage, as in a new tab.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context: BrowserContext | None = None
        self._page: Page | None = None

    def take(self) -> Page:
        """Return an empty page."""
        if self._context is None or self._page is None:
            # Nothing glides: to wait for it takes a second for each picture.
            self._context = self._browser.new_context(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
            self._page = self._context.new_page()
        return self._page

    def give_back(self, *, is_as_it_was: bool) -> None:
        """Empty the page for the next test; one that is not as it was is replaced."""
        try:
            if self._page is None or not is_as_it_was:
                self.close()
            else:
                self._page.evaluate("() => { sessionStorage.clear(); localStorage.clear(); }")
                self._page.goto("about:blank")
        except Error:
            self.close()  # the test failed before it had a page, or the page hangs

    def close(self) -> None:
        """Close it; the next test gets a new one."""
        if self._context is not None:
            self._context.close()
        self._context = self._page = None
