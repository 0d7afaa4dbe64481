"""The budget picker: a question as a cell's last expression, with a slider over what it may cost.

The browser only looks up what `ladder` worked out.  What costs anything, the button, is done here, through the
question's own `release`.  Import this module only when a picker is first shown: it brings ipywidgets with it.
"""

from __future__ import annotations

import weakref
from datetime import UTC, datetime
from html import escape
from typing import Any

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from dpnb.answer.faces import FAINT, STYLE
from dpnb.errors import DpnbError
from dpnb.notebook import ladder, panel, place
from dpnb.notebook.widgets import asset
from dpnb.session.query import Query

_shown: weakref.WeakSet[Picker] = weakref.WeakSet()


class Picker(anywidget.AnyWidget):
    """The picker of one question.

    Parameters
    ----------
    query : Query

    Attributes
    ----------
    state : dict
        What `ladder` makes of the question, and `phase`: "asking", or "answered" when the answer has taken the place.
    is_stale : bool
        The budget has changed since; the browser asks for the state anew when somebody looks.
    """

    _esm = asset("picker.js")
    _css = asset("picker.css")
    state = traitlets.Dict().tag(sync=True)
    is_stale = traitlets.Bool(False).tag(sync=True)

    def __init__(self, query: Query) -> None:
        self._query = query
        self._cell = place.asking_cell()
        self._seen = query.session.ledger.count
        self._display: DisplayHandle | None = None
        super().__init__(state={**ladder.ladder(query), "phase": "asking"})
        self.on_msg(self._on_message)

    def show(self) -> None:
        """Display it below the cell that is being run, so that it can be replaced by its answer there."""
        _shown.add(self)
        panel.on_flush(_follow)
        self._display = display(self._bundle(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def follow(self) -> None:
        """Note whether the budget has changed since the picker was made."""
        self.is_stale = self.is_stale or self._query.session.ledger.count != self._seen

    def _bundle(self) -> dict[str, object]:
        """Live where widgets run; elsewhere the answer, or before it the preview."""
        bundle = self._repr_mimebundle_()
        live: dict[str, object] = dict(bundle[0]) if bundle is not None else {}
        if self.state["phase"] == "answered":
            return {
                **live,
                "text/plain": self.state["answer"]["text"],
                "text/html": _dated(self.state["answer"]["html"]),
            }
        return {**live, "text/plain": repr(self._query), "text/html": self._query._repr_html_()}

    def _on_message(self, _: Picker, content: object, __: object) -> None:
        match content:
            case {"method": "refresh"}:
                self._renew()
            case {"method": "release", "target": dict(target)}:
                with place.in_cell(self._cell):
                    self._release(target)

    def _release(self, target: dict[str, str]) -> None:
        """Release at a rung of the ladder, and let the answer take the picker's place."""
        try:
            if target == {"share": ladder.ALL}:
                answer = self._query.release(share=1)
            else:
                answer = self._query.release(mu=float(target["mu"]))
        except DpnbError as error:
            self._renew(**ladder.refusal(error))
            return
        self._renew(phase="answered", answer=ladder.answered(answer), code=f".release({_code(target)})")
        if self._display is not None:
            self._display.update(self._bundle(), raw=True)  # type: ignore[no-untyped-call]

    def _renew(self, **changes: Any) -> None:
        """Work the ladder out anew."""
        self._seen = self._query.session.ledger.count
        phase = self.state["phase"]
        self.state = {**ladder.ladder(self._query), "phase": phase, **changes}
        self.is_stale = False


def show(query: Query) -> None:
    """Display a question's picker below the cell that is being run."""
    Picker(query).show()


def _code(target: dict[str, str]) -> str:
    ((name, amount),) = target.items()
    return f"{name}={amount}"


def _follow(_: object) -> None:
    for picker in list(_shown):
        picker.follow()


def _dated(html: str) -> str:
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f'{html}<div style="{STYLE};{FAINT}">as of {escape(when)}</div>'
