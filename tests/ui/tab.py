"""One browser tab in which one test after another has its page."""

from __future__ import annotations

from playwright.sync_api import Browser, BrowserContext, Error, Page

SIZE = {"width": 1400, "height": 900}

# A dialog is left open, or the theme or the width of the panel is another: it is quicker to load the page again.
CLOSE_EVERYTHING = """() => {
  const shell = window.jupyterapp?.shell;
  sessionStorage.clear();
  localStorage.clear();
  if (!shell || document.querySelector('.jp-Dialog') || document.body.dataset.jpThemeName !== 'JupyterLab Light') {
    return false;
  }
  for (const widget of [...shell.widgets('main')]) {
    if (widget.context) {
      widget.context.model.dirty = false;
    }
    widget.close();
  }
  shell.collapseRight();
  document.activeElement?.blur();
  return true;
}"""


class Tab:
    """Kept from test to test, with JupyterLab in it where it is as a test finds it that loads the page.

    To load the page takes three quarters of the time of most tests.  Each test finds an empty storage and no document.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context: BrowserContext | None = None
        self._page: Page | None = None

    def take(self) -> Page:
        """Return a page, which may have JupyterLab in it."""
        if self._context is None or self._page is None:
            # Nothing glides: to wait for it takes a second for each picture.
            self._context = self._browser.new_context(viewport=SIZE, reduced_motion="reduce")
            self._page = self._context.new_page()
        return self._page

    def give_back(self, *, is_as_it_was: bool) -> None:
        """Close what is open, for the next test; a page that is not as it was is replaced."""
        try:
            if self._page is None or not is_as_it_was:
                self.close()
                return
            self._page.set_viewport_size(SIZE)
            if not self._page.evaluate(CLOSE_EVERYTHING):
                self._page.goto("about:blank")
        except Error:
            self.close()  # the test failed before it had a page, or the page hangs

    def close(self) -> None:
        """Close it; the next test gets a new one."""
        if self._context is not None:
            self._context.close()
        self._context = self._page = None
