"""The budget picker: a query as the last expression of a cell, with a slider for its cost.

The browser only looks up values that `make_state` computed.  The release behind the button is made here, through
`Query.release`.  Import this module only when a picker is first displayed, since it imports ipywidgets.
"""

from __future__ import annotations

import sys
import threading
import weakref
from contextlib import suppress
from fractions import Fraction
from typing import Any, Literal

import anywidget
import msgspec
import traitlets
from IPython.display import DisplayHandle, display

from dpnb._browser.messages import AskCurator, PickerRequest, Reconnect, Refresh, ReleaseCount, ReleaseOption
from dpnb._target import Target, target_of
from dpnb.accounting.exact import exact, from_text
from dpnb.errors import ConfirmationRequired, DpnbError, RequestError
from dpnb.notebook import cell_context, panel, picker_state, picker_steps, widgets
from dpnb.notebook.cell_output import shown_by
from dpnb.notebook.picker_steps import AT_MOST, large_release
from dpnb.query.query import Query
from dpnb.render.page import with_timestamp
from dpnb.results.answer import Answer
from dpnb.session.snapshot import connection_of

BEST = "{}.answer is the current best answer, at no cost; it changes when more is released"

_shown: weakref.WeakSet[Picker] = weakref.WeakSet()


class Picker(anywidget.AnyWidget):
    """The picker of one query.

    `state` is a `PickerState` of the protocol as JSON.  It `is_stale` if the budget has changed since it was computed;
    the browser then requests it again when visible.  `connection` is a `Connection` of the protocol as JSON; None if
    the table is in this process.  `progress` is what a long release is doing, and for how long; empty when idle.
    """

    _esm = widgets.asset("picker.js")
    _css = widgets.asset("picker.css")
    state = traitlets.Dict().tag(sync=True)
    is_stale = traitlets.Bool(False).tag(sync=True)
    connection = traitlets.Any(None).tag(sync=True)
    progress = traitlets.Unicode("").tag(sync=True)

    def __init__(self, query: Query) -> None:
        self._query = query
        self._run = cell_context.current_run()
        self._seen = _count(query)
        self._display: DisplayHandle | None = None
        self._lock = threading.RLock()
        shown = picker_state.make_state(query)
        if shown.answer is not None:
            # After a restart, running all cells shows the recorded answer.
            answer = msgspec.structs.replace(shown.answer, hint=BEST.format(_name_of(query)))
            shown = msgspec.structs.replace(shown, phase="answered", answer=answer)
        self._shown = shown
        self._count: Query | None = query.count_needed if shown.count_step else None
        """The count of the last step: a request for it that arrives twice is the same request."""
        super().__init__(state=msgspec.to_builtins(shown), connection=self._connection())
        self.on_msg(self._on_message)

    def show(self) -> None:
        """Display the picker below the cell that is being run, where its answer can replace it."""
        _shown.add(self)
        panel.on_flush(_follow)
        self._display = display(  # type: ignore[no-untyped-call]
            self._bundle(), raw=True, display_id=True
        )

    def follow(self) -> None:
        """Note whether the budget or the connection has changed since the picker was made.

        It takes no lock: a release that waits for a service must not delay what the page shows.
        """
        self.connection = self._connection()
        self.is_stale = self.is_stale or _count(self._query) != self._seen

    def _connection(self) -> dict[str, object] | None:
        state: dict[str, object] | None = msgspec.to_builtins(connection_of(self._query.runner.connection))
        return state

    def _bundle(self) -> dict[str, object]:
        """The live widget, and for other front ends the answers, or the preview before the first answer."""
        live = widgets.live(self, "picker")
        static = picker_state.static_output(self._query)
        if self._shown.answer is not None:
            static = {"text/plain": self._shown.answer.text, "text/html": with_timestamp(self._shown.answer.html)}
        if self._shown.count_answer is not None:
            static = {
                "text/plain": f"{static['text/plain']}\n{self._shown.count_answer.text}",
                "text/html": f"{static['text/html']}{self._shown.count_answer.html}",
            }
        return {**live, **static}

    def _on_message(self, _: Picker, content: object, __: object) -> None:
        # Two threads may handle two messages, and the later one must see the result of the earlier one.
        with self._lock, cell_context.in_run(self._run), shown_by(lambda: self._show_progress):
            match _request(content):
                case Refresh():
                    self._renew()
                case Reconnect():
                    panel.reconnect()
                case ReleaseOption() | ReleaseCount() as request:
                    self._release(request)
                case AskCurator() as request:
                    self._ask_curator(request)

    def _show_progress(self, text: str, done: bool) -> None:
        self.progress = "" if done else text

    def _release(self, request: ReleaseOption | ReleaseCount) -> None:
        """Release with the target of an option, and replace the picker by the answer; that of the step is below it."""
        is_count = isinstance(request, ReleaseCount)
        query = self._count if is_count else self._query
        answer = self._answer(query, request)
        if answer is not None and query is not None:
            code = picker_steps.code_of(query) if is_count else _name_of(query)
            again = f"{code}.release({_code(request.target)}) returns it again at no cost"
            shown = picker_state.rendered(answer, f"{code}.answer is this answer, and {again}")
            changes = {"count_answer": shown} if is_count else {"phase": "answered", "answer": shown}
            self._show_answer(request.id, **changes)

    def _ask_curator(self, request: AskCurator) -> None:
        """Send a request for budget; the answer arrives in the panel."""
        try:
            kind, amount, _ = _arguments(request.target)
            if kind != "mu":
                raise RequestError("picker: the page sent an invalid target; reload the page, and run the cell again")
            asked = picker_steps.ask(self._query, amount, request.why)
        except DpnbError as error:
            self._renew(refusal=picker_state.refusal_state(error), completed_request=request.id)
        else:
            self._renew(asked=asked, completed_request=request.id)

    def _answer(self, query: Query | None, request: ReleaseOption | ReleaseCount) -> Answer | None:
        """The answer to a request; None after a refusal, which is shown."""
        try:
            if query is None:
                raise RequestError("picker: the expected error is now known; nothing was charged")
            kind, amount, at_most = _arguments(request.target)
            with query._recorded_refusals():
                target = target_of(kind, amount)
            if not request.confirmed:
                self._refuse_large(query, target)
            with query._recorded_refusals():
                return query._released(target, at_most)
        except DpnbError as error:
            self._renew(refusal=picker_state.refusal_state(error), completed_request=request.id)
            return None
        except BaseException:  # for example an interrupt after the charge: the charge must be visible
            self._renew(completed_request=request.id)
            raise

    def _refuse_large(self, query: Query, target: Target) -> None:
        """Refuse a large cost that was not confirmed, since the page may show an earlier state of the budget."""
        large = large_release(query, target)
        if large is not None:
            raise ConfirmationRequired(
                f"{query.description}: the release would now take {large}; press the button again and confirm; nothing "
                "was charged"
            )

    def _show_answer(self, request: str, **changes: Any) -> None:
        """Show an answer, live and to readers who open the notebook without a kernel."""
        self._shown = msgspec.structs.replace(self._shown, **changes)
        if self._display is not None:
            # It makes the page draw the picker again, so this comes first: an answer that is displayed must not be
            # replaced.
            self._display.update(self._bundle(), raw=True)  # type: ignore[no-untyped-call]
        self._renew(completed_request=request)

    def _renew(self, **changes: Any) -> None:
        """Compute the state again; answers that were released here stay displayed."""
        kept = ["phase", "count_answer", "asked", *(["answer"] if self._shown.phase == "answered" else [])]
        self.is_stale = False  # before reading: a concurrent charge makes it stale again
        self._seen = _count(self._query)
        kept_fields = {name: getattr(self._shown, name) for name in kept}
        self._shown = msgspec.structs.replace(picker_state.make_state(self._query), **{**kept_fields, **changes})
        if self._shown.count_step is not None:
            with suppress(DpnbError):
                self._count = self._query.count_needed or self._count
        self.state = msgspec.to_builtins(self._shown)


def show(query: Query) -> None:
    """Display the picker of a query below the cell that is being run."""
    Picker(query).show()


def widget(query: Query) -> Picker:
    """The picker of a query, to be displayed by the caller; `follow` updates it."""
    picker = Picker(query)
    _shown.add(picker)
    return picker


def follow() -> None:
    """Note changes of the budget in all pickers."""
    for picker in list(_shown):
        picker.follow()


def _count(query: Query) -> int | None:
    """Number of requests; None while the ledger cannot be read, which any use of the picker reports."""
    with suppress(DpnbError):
        return query.runner.account.ledger.count
    return None


def _request(content: object) -> PickerRequest | None:
    """The request in a message; None for any other message."""
    with suppress(msgspec.ValidationError):
        request: PickerRequest = msgspec.convert(content, PickerRequest)
        return request
    return None


def _arguments(target: dict[str, Any]) -> tuple[Literal["mu", "share"], Fraction, Fraction]:
    """The requested target, which must be one that options can have, and the cost that was displayed, as mu squared.

    A target without a cost is that of a request that was charged before and not answered, which is free.
    """
    displayed = target.get(AT_MOST, "0")
    match [(name, amount) for name, amount in target.items() if name != AT_MOST]:
        case [("mu" | "share" as kind, str(amount))] if isinstance(displayed, str):
            return kind, _number(amount), _number(displayed)
    raise RequestError("picker: the page sent an invalid target; reload the page, and run the cell again")


def _number(text: str) -> Fraction:
    """A number from a decimal, or from a fraction as in the ledger."""
    try:
        return from_text(text) if "/" in text else exact(float(text))
    except ValueError:
        raise RequestError("picker: the page sent an invalid number; reload the page, and run the cell again") from None


def _name_of(query: Query) -> str:
    """The name that a query has in the notebook; empty if it has none."""
    names = list(vars(sys.modules["__main__"]).items())  # also those of a marimo notebook
    return next((name for name, value in names if value is query and name[0] != "_"), "")


def _code(target: dict[str, str]) -> str:
    ((name, amount),) = ((name, amount) for name, amount in target.items() if name != AT_MOST)
    return f"{name}={amount}"


def _follow(_: object) -> None:
    follow()
