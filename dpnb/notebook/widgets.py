"""Live gauges below a cell: an anywidget that shows one session and follows the panel's broadcasts.

Import this module only when gauges are first shown: it brings ipywidgets with it.
"""

from __future__ import annotations

from pathlib import Path

import anywidget
import msgspec
import traitlets

from dpnb._protocol.snapshot import Session
from dpnb.notebook import panel

_STATIC = Path(__file__).parent / "static"

_NOT_BUILT = """
export default {
  render({ el }) {
    el.textContent =
      "This cannot move: dpnb was installed without its JavaScript. Install it again with pip install .";
  }
};
"""


def asset(name: str) -> Path | str:
    """A file that the TypeScript build made, or what stands in for it in a checkout that was not built."""
    path = _STATIC / name
    return path if path.is_file() else _NOT_BUILT if path.suffix == ".js" else ""


class Gauges(anywidget.AnyWidget):
    """The gauges of one session.

    Parameters
    ----------
    state : dict
        A `Session` of the protocol as JSON.  Its log is left to the panel.
    """

    _esm = asset("gauges.js")
    _css = asset("gauges.css")
    state = traitlets.Dict().tag(sync=True)


LIVE = "application/vnd.dpnb.widget+json"
"""What dpnb's Lab extension shows by itself: the widget's view while its kernel lives, else the page's HTML.

JupyterLab's own view of a widget shows an error where the kernel is gone.  Other front ends pass over this type.
"""

_shown: dict[str, Gauges] = {}
"""The one widget of every session that was ever displayed; each display of it is a view of the same state."""


def gauges(session: Session) -> Gauges:
    """Return the live gauges of a session, brought up to date; they follow every flush of the panel from then on."""
    key = session.id
    widget = _shown.get(key)
    if widget is None or widget.comm is None:  # never shown, or closed by the user
        widget = _shown[key] = Gauges(state=_without_log(session))
        panel.on_flush(_follow)
    else:
        widget.state = _without_log(session)
    return widget


def mimebundle(session: Session, *, text: str, html: str) -> dict[str, object]:
    """Every face of a session's gauges: live where widgets run, and static where they do not.

    Parameters
    ----------
    session : Session
    text, html : str
        What a terminal, and a notebook that is opened without a kernel, show instead.

    Returns
    -------
    dict
        Content by MIME type, for `_repr_mimebundle_`.
    """
    return {**live(gauges(session), "gauges"), "text/plain": text, "text/html": html}


def live(widget: anywidget.AnyWidget, view: str) -> dict[str, object]:
    """The live faces of a widget: of dpnb's Lab extension, where it goes by `view`, and of every other front end."""
    bundle = widget._repr_mimebundle_()
    return {} if bundle is None else {**bundle[0], LIVE: {"model_id": widget.model_id, "view": view}}


def _follow(sessions: list[Session]) -> None:
    """Bring every shown widget to the state that the panel was just sent."""
    for session in sessions:
        widget = _shown.get(session.id)
        if widget is not None and widget.comm is not None:
            widget.state = _without_log(session)


def _without_log(session: Session) -> dict[str, object]:
    state: dict[str, object] = msgspec.to_builtins(msgspec.structs.replace(session, log=[]))
    return state
