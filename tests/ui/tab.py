"""One browser tab in which one test after another has its page."""

from __future__ import annotations

from playwright.sync_api import Browser, BrowserContext, Error, Page

SIZE = {"width": 1400, "height": 900}

COVERS = ".jp-Dialog, .lm-Menu, .jp-ModalCommandPalette:not(.lm-mod-hidden)"

# What still covers the page, or looks otherwise than at first, is best undone by loading the page again.  A launcher is
# opened first: if nothing is open, JupyterLab opens one a little later, in front of what is open then.  Kernels are
# shut down, and errors of what is closed are reported, before the next test listens to the page.
CLOSE_EVERYTHING = """async covers => {
  const app = window.jupyterapp;
  if (!app || document.querySelector(covers) || document.body.dataset.jpThemeName !== 'JupyterLab Light') {
    return false;
  }
  const widgets = [...app.shell.widgets('main')];
  await app.commands.execute('launcher:create');
  widgets.forEach(widget => widget.dispose());
  app.shell.collapseRight();
  app.shell.expandLeft();
  document.activeElement?.blur();
  await app.serviceManager.sessions.shutdownAll();
  await new Promise(resolve => requestIdleCallback(resolve));
  return [...app.shell.widgets('main')].every(({ id }) => id.startsWith('launcher'));
}"""

EMPTY_STORAGE = "() => { sessionStorage.clear(); localStorage.clear(); }"


class Tab:
    """Kept from test to test, with JupyterLab in it where no test has changed more than documents.

    To load the page takes most of the time of most tests.  Each test finds an empty storage and no document.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context: BrowserContext | None = None
        self._page: Page | None = None

    def take(self, url: str) -> Page:
        """Return a page: an empty one, or one with the JupyterLab of the server at `url` in which nothing is open."""
        if self._page is not None and not self._page.url.startswith(f"{url}/lab/"):
            self.empty()
        if self._context is None or self._page is None:
            # Nothing glides: to wait for it takes a second for each picture.
            self._context = self._browser.new_context(viewport=SIZE, reduced_motion="reduce")
            self._page = self._context.new_page()
        return self._page

    def give_back(self, *, is_as_it_was: bool) -> None:
        """Close what is open, for the next test; if the test has changed more, load nothing yet."""
        try:
            if self._page is not None and is_as_it_was and self._is_emptied(self._page):
                self._page.mouse.move(0, 0)
                self._page.evaluate(EMPTY_STORAGE)
            else:
                self.empty()
        except Error:
            self.close()  # the page hangs

    def _is_emptied(self, page: Page) -> bool:
        """Whether JupyterLab stays in the page, with nothing open in it."""
        page.set_viewport_size(SIZE)
        if page.locator(COVERS).count():
            page.keyboard.press("Escape")
        return bool(page.evaluate(CLOSE_EVERYTHING, COVERS))

    def empty(self) -> None:
        """Leave the page: the next test loads it.  Scripts, once compiled, load in half the time."""
        try:
            if self._page is not None and self._page.url != "about:blank":
                self._page.evaluate(EMPTY_STORAGE)
                self._page.goto("about:blank")
                self._page.set_viewport_size(SIZE)
        except Error:
            self.close()  # the page hangs, or its server is gone

    def close(self) -> None:
        """Close it; the next test gets a new one."""
        if self._context is not None:
            self._context.close()
        self._context = self._page = None
