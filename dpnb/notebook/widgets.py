"""Live gauges below a cell: an anywidget that shows one session and follows the panel's broadcasts.

Import this module only when gauges are first displayed, since it imports ipywidgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import msgspec
import traitlets
from IPython.display import display

from dpnb._protocol.messages import PanelRequest, Reconnect, RequestComparison
from dpnb._protocol.snapshot import SessionSnapshot
from dpnb.notebook import cell_context, panel
from dpnb.notebook import panel as snapshots
from dpnb.progress import ShowText
from dpnb.render.page import STYLE

# --- a line in the cell that shows the progress of a long operation ---------------------------------------------------


_own: ContextVar[Callable[[], ShowText] | None] = ContextVar("dpnb_own_line", default=None)


def begin() -> ShowText:
    """A new line: below the cell that is being run, or in the widget that makes the request."""
    own = _own.get()
    return ProgressLine() if own is None else own()


@contextmanager
def shown_by(own: Callable[[], ShowText]) -> Iterator[None]:
    """Show the progress of operations in the block in a widget, since output of its messages has no cell."""
    token = _own.set(own)
    try:
        yield
    finally:
        _own.reset(token)


class ProgressLine:
    """One line, displayed with its first text; an empty text hides it."""

    def __init__(self) -> None:
        self._handle: Any = None

    def __call__(self, text: str, done: bool) -> None:
        """Show a text in place of the one before."""
        del done  # the last text stays displayed
        html = f'<div style="{STYLE}">{escape(text)}</div>' if text else ""
        shown = {"text/plain": text, "text/html": html}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif text:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]


# --- live gauges below a cell -----------------------------------------------------------------------------------------


_STATIC = Path(__file__).parent / "static"

_NOT_BUILT = """
export default {
  render({ el }) {
    el.textContent =
      "Not interactive: dpnb was installed without its JavaScript. Install it again with pip install .";
  }
};
"""


def asset(name: str) -> Path | str:
    """A file of the TypeScript build, or a placeholder in a checkout that was not built."""
    path = _STATIC / name
    return path if path.is_file() else _NOT_BUILT if path.suffix == ".js" else ""


class Gauges(anywidget.AnyWidget):
    """The gauges of one session.

    `state` is a `SessionSnapshot` of the protocol as JSON; its log is empty, since only the panel shows it.
    """

    _esm = asset("gauges.js")
    _css = asset("gauges.css")
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: object) -> None:
        super().__init__(**traits)
        self.on_msg(_on_message)


def _on_message(_: Gauges, content: object, __: object) -> None:
    """Reconnect or compare when the page requests it; other messages are ignored."""
    with suppress(msgspec.ValidationError):
        match msgspec.convert(content, PanelRequest):
            case Reconnect():
                snapshots.reconnect()
            case RequestComparison(session=session, is_shown=is_shown):
                snapshots.compare(session, is_shown=is_shown)
                panel.publish()


LIVE = "application/vnd.dpnb.widget+json"
"""MIME type for dpnb's Lab extension: it shows the widget while its kernel is alive, and otherwise the HTML output.

JupyterLab's own widget view shows an error if the kernel is gone.  Other front ends ignore this type.
"""

_shown: dict[str, Gauges] = {}
"""The widget of each displayed session; every display of it is a view of the same state."""


def gauges(session: SessionSnapshot) -> Gauges:
    """Return the updated live gauges of a session; every flush of the panel updates them."""
    key = session.id
    widget = _shown.get(key)
    if widget is None or widget.comm is None:  # never shown, or closed by the user
        widget = _shown[key] = Gauges(state=_without_log(session))
        panel.on_flush(_follow)
    else:
        widget.state = _without_log(session)
    return widget


def mimebundle(session: SessionSnapshot, *, text: str, html: str) -> dict[str, object]:
    """A session's gauges in every MIME type: live for widgets, and static.

    `text` is for a terminal, and `html` for a notebook that was opened without a kernel.
    """
    return {**live(gauges(session), "gauges"), "text/plain": text, "text/html": html}


def live(widget: anywidget.AnyWidget, view: str) -> dict[str, object]:
    """The live MIME types of a widget: for dpnb's Lab extension, which selects by `view`, and for other front ends.

    The other front ends' type is omitted if it is not certain that a front end is there at all.
    """
    bundle = widget._repr_mimebundle_()
    if bundle is None:
        return {}
    others = {} if cell_context.is_front_end_unknown() else bundle[0]
    return {**others, LIVE: {"model_id": widget.model_id, "view": view}}


def _follow(sessions: list[SessionSnapshot]) -> None:
    """Update every displayed widget with the state that was just sent to the panel."""
    for session in sessions:
        widget = _shown.get(session.id)
        if widget is not None and widget.comm is not None:
            widget.state = _without_log(session)


def _without_log(session: SessionSnapshot) -> dict[str, object]:
    state: dict[str, object] = msgspec.to_builtins(msgspec.structs.replace(session, log=[]))
    return state
