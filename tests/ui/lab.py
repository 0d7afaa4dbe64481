"""Driving JupyterLab in a browser, in the words of someone who uses it."""

from __future__ import annotations

import ast
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from forked import Forked, python
from ui.console import Console, keep_picture
from ui.server import TOKEN
from waiting import LIMIT_MS

expect.set_options(timeout=LIMIT_MS)
THEMES = ("JupyterLab Dark", "JupyterLab Light")
"""The one that a page has at first is the last: after both, it has that again."""

WIDE = 1000
"""Pixels beside which the side panels keep their width."""
POLL = 40
"""Milliseconds between two looks at the page."""

HOLD = "from fake_session import hold\n"
"""Code after which a cell can wait with ``hold()`` until the test calls `Lab.let_go`."""

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

# Spinners never end, and what a cell out of sight has begun does not go on: JupyterLab leaves its contents undrawn.
IS_STILL = """() => document.getAnimations().every(({ playState, effect }) =>
  playState !== 'running' || effect.getComputedTiming().endTime === Infinity ||
  !effect.target?.checkVisibility({ contentVisibilityAuto: true }))"""

# Commands are started and waited for separately: what must be seen while a cell runs is looked at in between.
START = """([command, index]) => {
  const app = window.jupyterapp;
  if (index !== null) {
    app.shell.currentWidget.content.activeCellIndex = index;
  }
  const run = window.dpnbTestRun = { isDone: false };
  void app.commands.execute(command).then(() => { run.isDone = true; });
}"""

RESTART = """() => {
  const run = window.dpnbTestRun = { isDone: false };
  void window.jupyterapp.shell.currentWidget.sessionContext.restartKernel().then(() => { run.isDone = true; });
}"""

CLOSE_LAUNCHERS = """() => {
  const { shell } = window.jupyterapp;
  [...shell.widgets('main')].filter(({ id }) => id.startsWith('launcher')).forEach(widget => widget.dispose());
}"""


class Lab:
    """One browser tab with JupyterLab in it."""

    def __init__(self, page: Page, url: str, root: Path, folder: str = "") -> None:
        """Take an empty page; `folder` is the one below the server's `root` in which the notebooks are."""
        self.page = page
        self._url = url
        self._folder = folder
        self.files = root / folder
        self.console = Console(page, url)
        self.has_changed_the_tab = False
        """To be set by a test that leaves routes or scripts with the tab: the next test gets another one."""
        self.has_changed_the_page = False
        """To be set by a test that changes more than documents and the theme: the next test loads the page again."""
        page.set_default_timeout(LIMIT_MS)

    @property
    def troubles(self) -> list[str]:
        """Errors in the console, and requests that left this machine."""
        return self.console.troubles

    def _path(self, path: str) -> str:
        """How the server calls a file."""
        return f"{self._folder}/{path}" if self._folder else path

    # What the user does

    def open(self, path: str) -> None:
        """Open a notebook and wait for its kernel: in the page of the test before, or in a workspace of its own.

        In that page there is a launcher, and the panel, which JupyterLab opens once, is closed.
        """
        if self.page.url.startswith(f"{self._url}/lab/"):
            self.page.evaluate("() => window.jupyterapp.shell.activateById('dpnb:ledger-panel')")
            self.open_beside(path)
            self.page.evaluate(CLOSE_LAUNCHERS)
        else:
            self.load(path)

    def load(self, path: str) -> None:
        """Load the page with a notebook in a workspace of its own, and wait for the notebook's kernel."""
        self.page.goto(f"{self._url}/lab/workspaces/{uuid.uuid4().hex}/tree/{self._path(path)}?token={TOKEN}")
        self.wait_until_idle()

    def open_in_notebook_7(self, path: str) -> None:
        """Open a notebook in Notebook 7, which the same server has, and wait for its kernel."""
        self.page.goto(f"{self._url}/notebooks/{self._path(path)}?token={TOKEN}")
        self.wait_until_idle()

    def open_beside(self, path: str) -> None:
        """Open another notebook in the same page and wait for its kernel."""
        self.page.evaluate(
            "path => void window.jupyterapp.commands.execute('docmanager:open', { path })", self._path(path)
        )
        self.wait_until_in_front(path)
        self.wait_until_idle()

    def wait_until_in_front(self, path: str) -> None:
        """Wait until this is the notebook that is being looked at."""
        self.wait_for("path => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=self._path(path))

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
        self.wait_for("() => window.jupyterapp.shell.currentWidget?.console?.sessionContext.isReady")

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
            self._path(path),
        )

    def save(self) -> None:
        """Save the notebook in front: a page that is reloaded forgets what was not saved."""
        self.page.evaluate(START, ["docmanager:save", None])
        self._wait_until_done()

    def reload(self, *, wait: bool = True) -> None:
        """Reload the page; without waiting, the kernel may still be busy."""
        self.has_changed_the_page = True  # it opens again what was open, and does not say when all of it is
        self.page.reload()
        if wait:
            self.wait_until_idle()

    def restart(self) -> None:
        """Restart the kernel of the notebook in front."""
        self.page.evaluate(RESTART)
        self._wait_until_done()
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
    def running(self, index: int) -> Iterator[None]:
        """Run a cell; the block is carried out while it runs."""
        self.page.evaluate(START, ["notebook:run-cell", index])
        yield
        self._wait_until_done()

    def let_go(self, name: str = "go-on") -> None:
        """Let a cell go on that waits in `hold`."""
        (self.files / name).touch()

    def hold_on(self, name: str = "go-on") -> None:
        """Let the next cell wait there again."""
        (self.files / name).unlink()

    def run(self, index: int) -> None:
        """Run a cell and wait until it is done."""
        with self.running(index):
            pass

    def run_all(self) -> None:
        """Run every cell and wait until all are done."""
        self.page.evaluate(START, ["notebook:run-all-cells", None])
        self._wait_until_done()

    def run_elsewhere(self, *code: str) -> None:
        """Run code in another process, in the folder that the Lab shows."""
        assert Forked(python, str(self.files), os.devnull, "-c", "\n".join(code)).end() == 0

    def open_folds(self) -> None:
        """Unfold whatever is folded away in the panel and below the cells."""
        folded = self.page.locator(".dpnb-fold:not([open]) > summary")
        while folded.count():
            folded.first.click()

    def resize(self, width: int, height: int) -> None:
        """Give the page another size."""
        self.has_changed_the_page |= width < WIDE  # the side panels then give way, and do not come back
        self._resize(width, height)

    def resize_without_panels(self, width: int, height: int) -> None:
        """Give the page another size, in which both side panels would leave nothing of the notebook."""
        self.page.evaluate("() => ['Left', 'Right'].forEach(side => window.jupyterapp.shell[`collapse${side}`]())")
        self._resize(width, height)

    def _resize(self, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})
        self.wait_for("width => document.documentElement.clientWidth === width", arg=width)

    @contextmanager
    def narrow_panel(self, width: int) -> Iterator[None]:
        """Drag the panel's edge until it is about this many pixels wide; after the block, drag it back."""
        before = self._drag_edge(width)
        yield
        self._drag_edge(before)

    def _drag_edge(self, width: float) -> float:
        """Give the panel about this width; returns the one that it had."""
        box = self.panel.bounding_box()
        assert box is not None
        middle = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] - 1, middle)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] - width - 1, middle, steps=5)
        self.page.mouse.up()
        return box["width"]

    def set_theme(self, name: str) -> None:
        """Change the Lab's theme and wait until it is on."""
        self.page.evaluate("theme => void window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        self.wait_for("name => document.body.dataset.jpThemeName === name", arg=name)

    def wait_for(self, condition: str, arg: object = None) -> None:
        """Wait until the page says so; asked at each frame, it would draw frames all the time."""
        self.page.wait_for_function(condition, arg=arg, polling=POLL)

    def _wait_until_done(self) -> None:
        self.wait_for("window.dpnbTestRun.isDone")

    def wait_until_idle(self) -> None:
        """Wait until the notebook in front has a kernel with nothing to do."""
        self.wait_for(KERNEL_IS_IDLE)

    def is_running(self) -> bool:
        """Whether the cell of `running` is not done yet."""
        return self.page.evaluate("window.dpnbTestRun.isDone") is False

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
        content: dict[str, Any] = json.loads((self.files / path).read_text(encoding="utf-8"))
        return content

    def value(self, expression: str) -> object:
        """What an expression is worth in the kernel; it must be a literal."""
        return ast.literal_eval(str(self.page.evaluate(EVALUATE, expression)))

    def wait_until_still(self) -> None:
        """Wait until nothing glides any more: gauges and bars do when they change."""
        self.wait_for(IS_STILL)

    def screenshot(self, name: str) -> None:
        """Keep a picture for people to look at."""
        self.wait_until_still()
        keep_picture(self.page, name)


def reading(gauge: Locator) -> float:
    """The value that a screen reader is given."""
    return float(gauge.get_attribute("aria-valuenow") or "nan")


def expect_reading(gauge: Locator, text: str) -> None:
    """Wait until a gauge shows these words, to the eye and to a screen reader."""
    expect(gauge).to_have_attribute("aria-valuetext", text)
    expect(gauge.locator(".dpnb-gauge-text")).to_have_text(text)
