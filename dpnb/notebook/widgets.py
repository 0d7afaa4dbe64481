"""Live gauges below a cell: an anywidget that follows the panel's broadcasts.

Import this module only when gauges are first displayed, since it imports ipywidgets.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import anywidget
import msgspec
import traitlets

from dpnb._browser.messages import PanelRequest, Reconnect, RequestComparison
from dpnb._browser.snapshot import SessionSnapshot
from dpnb.notebook import cell_context, panel

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
                panel.reconnect()
            case RequestComparison(session=session, is_shown=is_shown):
                panel.compare(session, is_shown=is_shown)
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
    """A session's gauges in every MIME type: live for widgets, and static."""
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
