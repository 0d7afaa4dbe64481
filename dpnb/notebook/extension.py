"""``%load_ext dpnb``: live gauges, the panel, the magic."""

from __future__ import annotations

import importlib.util
from typing import Any

from dpnb.notebook import panel, snapshot
from dpnb.notebook.magics import DpnbMagics
from dpnb.session import Session, live, state


def load(shell: Any) -> None:
    """Turn everything on; loading twice changes nothing."""
    shell.register_magics(DpnbMagics)
    if getattr(shell, "kernel", None) is None or importlib.util.find_spec("anywidget") is None:
        return  # a terminal, or no widgets: the text and HTML faces of a session serve
    shell.display_formatter.mimebundle_formatter.for_type(Session, _bundle)
    panel.install(snapshot.sessions)
    live.subscribe(panel.publish)


def unload(shell: Any) -> None:
    """Turn the live faces and the magic off again."""
    live.unsubscribe(panel.publish)
    shell.magics_manager.magics["line"].pop("dpnb", None)
    shell.display_formatter.mimebundle_formatter.type_printers.pop(Session, None)


def _bundle(session: Session) -> dict[str, object]:
    from dpnb.notebook import widgets  # brings ipywidgets, so only when gauges are shown

    now = state.snapshot(session)
    return widgets.mimebundle(now, text=state.text(now), html=state.html(now))
