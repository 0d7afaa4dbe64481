"""Driving JupyterLab in a browser, in the words of someone who uses it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request, expect

from ui.server import TOKEN

SCREENSHOTS = Path(__file__).parent / "screenshots"
LOAD_MS = 60_000
"""How long a page or a kernel may take to start, in milliseconds; a busy machine with two cores is slow."""
RUN_MS = 2 * LOAD_MS
"""How long a cell may run unless a test says otherwise, in milliseconds."""

# The toolbar says "idle" too early: a cell that is run then opens a dialog that asks for a kernel, and waits for ever.
KERNEL_IS_IDLE = """() => {
  const context = window.jupyterapp?.shell?.currentWidget?.sessionContext;
  return context?.isReady === true && context.session?.kernel?.status === 'idle';
}"""

EVALUATE = """async expression => {
  const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
  const content = { code: '', store_history: false, user_expressions: { value: expression } };
  const reply = await kernel.requestExecute(content).done;
  const { value } = reply.content.user_expressions;
  return value.status === 'ok' ? value.data['text/plain'] : `${value.ename}: ${value.evalue}`;
}"""

# JupyterLab's own debugger says this when a kernel goes away while it asks; it happens without dpnb too.
NOT_OURS = "Could not restore the debugger state: Canceled future"

# Notebook 7 looks for settings of plugins that it does not have, and for commands before they are there; without dpnb
# too.  It is let off only where nothing of an extension took part.
NOTEBOOK_7S_OWN = "/static/notebook/notebook_core."

# Commands are started and waited for separately: what must be seen while a cell runs is looked at in between.
START = """([command, index]) => {
  const app = window.jupyterapp;
  if (index !== null) {
    app.shell.currentWidget.content.activeCellIndex = index;
  }
  window.dpnbTestIsDone = false;
  void app.commands.execute(command).then(() => { window.dpnbTestIsDone = true; });
}"""


class Lab:
    """One browser tab with JupyterLab in it."""

    def __init__(self, page: Page, url: str, root: Path) -> None:
        self.page = page
        self._url = url
        self._root = root
        self.troubles: list[str] = []
        """Errors in the console, and requests that left this machine."""
        page.set_default_timeout(20_000)
        page.on("console", self._on_console)
        page.on("pageerror", self._on_page_error)
        page.on("request", self._on_request)

    def _on_page_error(self, error: Error) -> None:
        stack = error.stack or ""
        if not (NOTEBOOK_7S_OWN in stack and "labextensions/" not in stack):
            self.troubles.append(f"page error: {stack or error.message}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(NOT_OURS):
            self.troubles.append(f"console error: {message.text} ({message.location.get('url', '')})")

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((self._url, self._url.replace("http", "ws", 1), "data:", "blob:")):
            self.troubles.append(f"outside request: {request.url}")

    # What the user does

    def open(self, path: str) -> None:
        """Open a notebook in a workspace of its own and wait for its kernel."""
        self.page.goto(f"{self._url}/lab/workspaces/{uuid.uuid4().hex}/tree/{path}?token={TOKEN}")
        self.wait_until_idle()

    def open_in_notebook_7(self, path: str) -> None:
        """Open a notebook in Notebook 7, which the same server has, and wait for its kernel."""
        self.page.goto(f"{self._url}/notebooks/{path}?token={TOKEN}")
        self.wait_until_idle()

    def open_beside(self, path: str) -> None:
        """Open another notebook in the same page and wait for its kernel."""
        self.page.evaluate("path => void window.jupyterapp.commands.execute('docmanager:open', { path })", path)
        self.page.wait_for_function(
            "path => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=path, timeout=LOAD_MS
        )
        self.wait_until_idle()

    def open_on_the_same_kernel(self, path: str) -> None:
        """Open another notebook in the same page, and turn it to the kernel of the one in front."""
        kernel = self.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")
        self.open_beside(path)
        self.page.evaluate(
            "id => window.jupyterapp.shell.currentWidget.sessionContext.changeKernel({ id }).then(() => null)", kernel
        )
        self.wait_until_idle()

    def open_console(self) -> None:
        """Open a console on the kernel of the notebook in front."""
        self.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:create-console')")
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.console?.sessionContext.isReady", timeout=LOAD_MS
        )

    def run_all_but_errors(self, *left_out: int) -> None:
        """Run the cells one after another, without some."""
        count = int(self.page.evaluate("window.jupyterapp.shell.currentWidget.content.widgets.length"))
        for index in range(count):
            if index not in left_out:
                self.run(index)

    def set_setting(self, plugin: str, name: str, value: object) -> None:
        """Change a setting of a Lab extension, save, and reload the page with it."""
        self.page.evaluate(
            """async ([plugin, name, value]) => {
              const { serviceManager } = window.jupyterapp;
              const item = await serviceManager.settings.fetch(plugin);
              const raw = JSON.stringify({ ...JSON.parse(item.raw || '{}'), [name]: value });
              await serviceManager.settings.save(plugin, raw);
            }""",
            [plugin, name, value],
        )
        self.save()
        self.reload()

    def activate(self, path: str) -> None:
        """Turn to a notebook that is open."""
        self.page.evaluate(
            """path => {
              const app = window.jupyterapp;
              const isIt = widget => widget.context?.path === path;
              app.shell.activateById([...app.shell.widgets('main')].find(isIt).id);
            }""",
            path,
        )

    def save(self) -> None:
        """Save the notebook in front: a page that is reloaded forgets what was not saved."""
        self.page.evaluate(START, ["docmanager:save", None])
        self._wait_until_done()

    def reload(self, *, wait: bool = True) -> None:
        """Reload the page; without waiting, the kernel may still be busy."""
        self.page.reload()
        if wait:
            self.wait_until_idle()

    def restart(self) -> None:
        """Restart the kernel of the notebook in front."""
        self.page.evaluate("() => void window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
        self.page.wait_for_function(f"!({KERNEL_IS_IDLE})()", timeout=LOAD_MS)
        self.wait_until_idle()

    def shut_down(self) -> None:
        """Shut the kernel of the notebook in front down."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def write(self, index: int, source: str) -> None:
        """Replace what stands in a cell."""
        self.page.evaluate(
            """([index, source]) => {
              const { model } = window.jupyterapp.shell.currentWidget.content;
              model.cells.get(index).sharedModel.setSource(source);
            }""",
            [index, source],
        )

    @contextmanager
    def running(self, index: int, at_most: int = RUN_MS) -> Iterator[None]:
        """Run a cell; the block is carried out while it runs, for `at_most` milliseconds after the block."""
        self.page.evaluate(START, ["notebook:run-cell", index])
        yield
        self._wait_until_done(at_most)

    def run(self, index: int, at_most: int = RUN_MS) -> None:
        """Run a cell and wait until it is done, `at_most` so many milliseconds."""
        with self.running(index, at_most):
            pass

    def run_all(self) -> None:
        """Run every cell and wait until all are done."""
        self.page.evaluate(START, ["notebook:run-all-cells", None])
        self._wait_until_done()

    def run_elsewhere(self, *code: str) -> None:
        """Run code in another process, in the folder that the Lab shows."""
        subprocess.run([sys.executable, "-c", "\n".join(code)], cwd=self._root, check=True, timeout=120)

    def open_folds(self) -> None:
        """Unfold whatever is folded away in the panel and below the cells."""
        folded = self.page.locator(".dpnb-fold:not([open]) > summary")
        while folded.count():
            folded.first.click()

    def narrow_panel(self, width: int) -> None:
        """Drag the panel's edge until it is about so many pixels wide."""
        box = self.panel.bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] - 1, middle)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] - width, middle, steps=5)
        self.page.mouse.up()

    def set_theme(self, name: str) -> None:
        """Change the Lab's theme and wait until it is on."""
        self.page.evaluate("theme => void window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)

    def _wait_until_done(self, at_most: int = RUN_MS) -> None:
        self.page.wait_for_function("window.dpnbTestIsDone", timeout=at_most)

    def wait_until_idle(self) -> None:
        """Wait until the notebook in front has a kernel with nothing to do."""
        self.page.wait_for_function(KERNEL_IS_IDLE, timeout=LOAD_MS)

    def is_running(self) -> bool:
        """Whether the cell of `running` is not done yet."""
        return self.page.evaluate("window.dpnbTestIsDone") is False

    # What the user sees

    @property
    def panel(self) -> Locator:
        """The side panel."""
        return self.page.locator(".dpnb-panel")

    @property
    def status(self) -> Locator:
        """The line in the status bar."""
        return self.page.locator("#jp-main-statusbar .dpnb-status")

    def panel_gauge(self, gauge: str) -> Locator:
        """A meter in the panel's first session."""
        return self.panel.locator(f".dpnb-session >> nth=0 >> [role=meter][data-gauge={gauge}]")

    def cell_gauge(self, gauge: str) -> Locator:
        """A meter of the first session below a cell."""
        return self.page.locator(f".jp-OutputArea .dpnb-session >> nth=0 >> [role=meter][data-gauge={gauge}]")

    @property
    def places(self) -> tuple[Locator, Locator]:
        """The first session in the panel, and the first below a cell."""
        return self.panel.locator(".dpnb-session").first, self.page.locator(".jp-OutputArea .dpnb-session").first

    def notebook(self, path: str) -> dict[str, Any]:
        """A notebook as it was saved last."""
        content: dict[str, Any] = json.loads((self._root / path).read_text(encoding="utf-8"))
        return content

    def value(self, expression: str) -> object:
        """What an expression is worth in the kernel; it must be a literal."""
        return ast.literal_eval(str(self.page.evaluate(EVALUATE, expression)))

    def screenshot(self, name: str) -> None:
        """Keep a picture for people to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.wait_for_timeout(300)  # gauges glide
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


def reading(gauge: Locator) -> float:
    """The value that a screen reader is given."""
    return float(gauge.get_attribute("aria-valuenow") or "nan")


def expect_reading(gauge: Locator, text: str) -> None:
    """Wait until a gauge shows these words, to the eye and to a screen reader."""
    expect(gauge).to_have_attribute("aria-valuetext", text)
    expect(gauge.locator(".dpnb-gauge-text")).to_have_text(text)
