"""The budget picker: a question as a cell's last expression, with a slider over what it may cost.

The browser only looks up what `make_state` worked out.  What costs anything, the button, is done here, through the
question's own `release`.  Import this module only when a picker is first shown: it brings ipywidgets with it.
"""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from fractions import Fraction
from typing import Any

import anywidget
import msgspec
import traitlets
from IPython.display import DisplayHandle, display

from dpnb._core.query import Query
from dpnb._protocol.messages import PickerRequest, Refresh, Release
from dpnb._protocol.picker import RenderedAnswer
from dpnb.accounting.exact import exact, from_text
from dpnb.errors import DpnbError, RequestError
from dpnb.notebook import cell_context, panel, picker_state, progress_line, widgets
from dpnb.render.page import with_timestamp

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
        A `PickerState` of the protocol as JSON.
    is_stale : bool
        The budget has changed since; the browser asks for the state anew when somebody looks.
    progress : str
        What a release that lasts is doing, and for how long; empty for nothing.
    """

    _esm = widgets.asset("picker.js")
    _css = widgets.asset("picker.css")
    state = traitlets.Dict().tag(sync=True)
    is_stale = traitlets.Bool(False).tag(sync=True)
    progress = traitlets.Unicode("").tag(sync=True)

    def __init__(self, query: Query) -> None:
        self._query = query
        self._cell = cell_context.current_cell()
        self._seen = _count(query)
        self._display: DisplayHandle | None = None
        self._lock = threading.RLock()
        shown = picker_state.make_state(query)
        if shown.answer is not None:
            # After a restart, running all cells again shows the answer where there was one.
            shown = msgspec.structs.replace(shown, phase="answered", code_hint=BEST)
        self._shown = shown
        super().__init__(state=msgspec.to_builtins(shown))
        self.on_msg(self._on_message)

    def show(self) -> None:
        """Display it below the cell that is being run, so that it can be replaced by its answer there."""
        _shown.add(self)
        panel.on_flush(_follow)
        self._display = display(  # type: ignore[no-untyped-call]
            self._bundle(self._shown.answer), raw=True, display_id=True
        )

    def follow(self) -> None:
        """Note whether the budget has changed since the picker was made."""
        self.is_stale = self.is_stale or _count(self._query) != self._seen

    def _bundle(self, answer: RenderedAnswer | None = None) -> dict[str, object]:
        """Live where widgets run; elsewhere the answer, or before it the preview."""
        live = widgets.live(self, "picker")
        if answer is None:
            return {**live, **picker_state.static_output(self._query)}
        return {**live, "text/plain": answer.text, "text/html": with_timestamp(answer.html)}

    def _on_message(self, _: Picker, content: object, __: object) -> None:
        # Two messages may be handled by two threads, and the later one must find what the earlier one left.
        with self._lock, cell_context.in_cell(self._cell), progress_line.shown_by(lambda: self._tell):
            match _request(content):
                case Refresh():
                    self._renew()
                case Release(target=target, id=request):
                    self._release(target, request)

    def _tell(self, text: str, done: bool) -> None:
        self.progress = "" if done else text

    def _release(self, target: dict[str, Any], request: str) -> None:
        """Release with the target of an option, and let the answer take the picker's place."""
        try:
            answer = self._query.release(**_arguments(target))
        except DpnbError as error:
            self._renew(refusal=picker_state.refusal_state(error), completed_request=request)
            return
        except BaseException:  # an interrupt after the charge, say: what is paid must show
            self._renew(completed_request=request)
            raise
        shown = picker_state.rendered(answer)
        if self._display is not None:
            # For whoever opens the notebook without a kernel.  The page then draws the picker anew, so this comes
            # first: once the answer is there, nothing takes it away under the reader's hands.
            self._display.update(self._bundle(shown), raw=True)  # type: ignore[no-untyped-call]
        self._renew(
            phase="answered",
            answer=shown,
            code_hint=f".release({_code(target)}) gives this very answer again, free",
            completed_request=request,
        )

    def _renew(self, **changes: Any) -> None:
        """Work the state out again; an answer that was given here stays the one that is shown."""
        kept = ("phase", "answer", "code_hint") if self._shown.phase == "answered" else ("phase",)
        self.is_stale = False  # before looking: what is charged meanwhile makes it stale again
        self._seen = _count(self._query)
        kept_fields = {name: getattr(self._shown, name) for name in kept}
        self._shown = msgspec.structs.replace(picker_state.make_state(self._query), **{**kept_fields, **changes})
        self.state = msgspec.to_builtins(self._shown)


def show(query: Query) -> None:
    """Display a question's picker below the cell that is being run."""
    Picker(query).show()


def _count(query: Query) -> int | None:
    """How many requests there are; None while the ledger cannot be read, which whoever uses it is told."""
    with suppress(DpnbError):
        return query.runner.account.ledger.count
    return None


def _request(content: object) -> PickerRequest | None:
    """What a page requests; None for any other message."""
    with suppress(msgspec.ValidationError):
        request: PickerRequest = msgspec.convert(content, PickerRequest)
        return request
    return None


def _arguments(target: dict[str, Any]) -> dict[str, Any]:
    """What a page asks for: one target of those that the options have.

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
