"""The budget picker: a question as a cell's last expression, with a slider over what it may cost.

The browser only looks up what `ladder` worked out.  What costs anything, the button, is done here, through the
question's own `release`.  Import this module only when a picker is first shown: it brings ipywidgets with it.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from fractions import Fraction
from typing import Any

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from dpnb.accounting.exact import exact, from_text
from dpnb.answer.faces import dated
from dpnb.errors import DpnbError, RequestError
from dpnb.notebook import ladder, panel, place, progress, widgets
from dpnb.session.query import Query

BEST = ".best gives all that is known by now, free; it changes when more becomes known"

_shown: weakref.WeakSet[Picker] = weakref.WeakSet()


class Picker(anywidget.AnyWidget):
    """The picker of one question.

    Parameters
    ----------
    query : Query

    Attributes
    ----------
    state : dict
        What `ladder` makes of the question, and `phase`: "asking", or "answered" where the answer has taken the place.
    is_stale : bool
        The budget has changed since; the browser asks for the state anew when somebody looks.
    doing : str
        What a release that lasts is doing, and for how long; empty for nothing.
    """

    _esm = widgets.asset("picker.js")
    _css = widgets.asset("picker.css")
    state = traitlets.Dict().tag(sync=True)
    is_stale = traitlets.Bool(False).tag(sync=True)
    doing = traitlets.Unicode("").tag(sync=True)

    def __init__(self, query: Query) -> None:
        self._query = query
        self._cell = place.asking_cell()
        self._seen = _count(query)
        self._display: DisplayHandle | None = None
        self._lock = threading.RLock()
        told = ladder.ladder(query)
        # After a restart, running all cells again shows the answer where there was one.
        known = {"phase": "answered", "again": BEST} if told["answer"] else {"phase": "asking"}
        super().__init__(state={**told, **known})
        self.on_msg(self._on_message)

    def show(self) -> None:
        """Display it below the cell that is being run, so that it can be replaced by its answer there."""
        _shown.add(self)
        panel.on_flush(_follow)
        self._display = display(  # type: ignore[no-untyped-call]
            self._bundle(self.state["answer"]), raw=True, display_id=True
        )

    def follow(self) -> None:
        """Note whether the budget has changed since the picker was made."""
        self.is_stale = self.is_stale or _count(self._query) != self._seen

    def _bundle(self, answer: dict[str, str] | None = None) -> dict[str, object]:
        """Live where widgets run; elsewhere the answer, or before it the preview."""
        live = widgets.live(self, "picker")
        if answer is None:
            return {**live, **ladder.still(self._query)}
        return {**live, "text/plain": answer["text"], "text/html": dated(answer["html"])}

    def _on_message(self, _: Picker, content: object, __: object) -> None:
        # Two messages may be handled by two threads, and the later one must find what the earlier one left.
        with self._lock, place.in_cell(self._cell), progress.shown_by(lambda: self._tell):
            match content:
                case {"method": "refresh"}:
                    self._renew()
                case {"method": "release", "target": dict(target), "id": done}:
                    self._release(target, done)

    def _tell(self, text: str, done: bool) -> None:
        self.doing = "" if done else text

    def _release(self, target: dict[str, str], done: object) -> None:
        """Release at a rung of the ladder, and let the answer take the picker's place."""
        try:
            answer = self._query.release(**_arguments(target))
        except DpnbError as error:
            self._renew(**ladder.refusal(error), done=done)
            return
        except BaseException:  # an interrupt after the charge, say: what is paid must show
            self._renew(done=done)
            raise
        shown = ladder.answered(answer)
        if self._display is not None:
            # For whoever opens the notebook without a kernel.  The page then draws the picker anew, so this comes
            # first: once the answer is there, nothing takes it away under the reader's hands.
            self._display.update(self._bundle(shown), raw=True)  # type: ignore[no-untyped-call]
        self._renew(
            phase="answered",
            answer=shown,
            again=f".release({_code(target)}) gives this very answer again, free",
            done=done,
        )

    def _renew(self, **changes: Any) -> None:
        """Work the ladder out anew; an answer that was given here stays the one that is shown."""
        kept = ("phase", "answer", "again") if self.state["phase"] == "answered" else ("phase",)
        self.is_stale = False  # before looking: what is charged meanwhile makes it stale again
        self._seen = _count(self._query)
        self.state = {**ladder.ladder(self._query), **{name: self.state[name] for name in kept}, **changes}


def show(query: Query) -> None:
    """Display a question's picker below the cell that is being run."""
    Picker(query).show()


def _count(query: Query) -> int | None:
    """How many requests there are; None while the ledger cannot be read, which whoever uses it is told."""
    with suppress(DpnbError):
        return query.session.ledger.count
    return None


def _arguments(target: dict[str, str]) -> dict[str, Any]:
    """What a page asks for: one target of those that the ladder offers.

    Raises
    ------
    RequestError, InvalidValueError
        It is another one.
    """
    match target:
        case {"mu": str(amount), **others} if not others:
            return {"mu": _number(amount)}
        case {"share": str(amount), **others} if not others:
            return {"share": _number(amount)}
    raise RequestError("picker: must send one target, mu or share; reload the page, and run the cell again")


def _number(text: str) -> Fraction:
    """A decimal, or a fraction as the ledger writes it."""
    try:
        return from_text(text) if "/" in text else exact(float(text))
    except ValueError:
        raise RequestError("picker: must send a number; reload the page, and run the cell again") from None


def _code(target: dict[str, str]) -> str:
    ((name, amount),) = target.items()
    return f"{name}={amount}"


def _follow(_: object) -> None:
    for picker in list(_shown):
        picker.follow()
