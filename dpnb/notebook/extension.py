"""``%load_ext dpnb``: live gauges, the budget picker, the panel, the magics, and explanations below errors.

Tracebacks are short: refusals are common, and their message is complete.  ``%debug`` still enters dpnb's frames.

What the first session and picker need is imported when the cell that loaded the extension has ended.  The kernel is
then usually idle; a cell that is already waiting is delayed by no more than it would otherwise spend on the same
imports.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from html import escape
from typing import Any

from IPython.display import display

from dpnb import progress
from dpnb._browser.messages import FollowLedgers, PanelRequest, Reconnect, RequestComparison
from dpnb._core import open_sessions
from dpnb.errors import DpnbError, printable
from dpnb.notebook import cell_context, column_completion, panel, picker_state
from dpnb.notebook.cell_output import begin_line, outside
from dpnb.notebook.column_completion import complete
from dpnb.notebook.ledger_watch import LedgerWatch
from dpnb.notebook.magics import DpnbMagics
from dpnb.query.query import Query
from dpnb.render import sessions
from dpnb.render.page import FAINT, STYLE, explanation_link
from dpnb.render.refusals import explanation_for
from dpnb.session import BaseSession, snapshot
from dpnb.session.session import import_libraries

# --- imports after the first cell -------------------------------------------------------------------------------------


DELAY = 0.05
"""Seconds after the cell, so that its last messages are sent first."""


def import_later() -> None:
    """Schedule the imports in the event loop that is running the cell, if any."""
    with suppress(RuntimeError):  # no loop is running
        loop = asyncio.get_running_loop()
        for imports in (_import_picker, import_libraries):  # one by one, so that messages are handled in between
            loop.call_later(DELAY, imports)


def _import_picker() -> None:
    with suppress(ImportError):  # without widgets, output is static
        from dpnb.notebook import picker  # noqa: F401


# --- short tracebacks -------------------------------------------------------------------------------------------------


HOOK = "_render_traceback_"
"""The method that IPython calls on an error with a custom traceback."""


def shorten(shell: Any) -> None:
    """Show short tracebacks for errors of dpnb."""

    def render(error: DpnbError) -> list[str]:
        shown = outside(error.__traceback__)
        offset = int(shown is not None and shown.tb_next is not None)  # the first frame is the shell's own
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, shown, tb_offset=offset)
        return lines

    setattr(DpnbError, HOOK, render)


def lengthen() -> None:
    """Show full tracebacks again."""
    if HOOK in vars(DpnbError):
        delattr(DpnbError, HOOK)


# --- ``%load_ext dpnb`` -----------------------------------------------------------------------------------------------


_watch = LedgerWatch(panel.ledgers, panel.publish)


def load(shell: Any) -> None:
    """Enable everything; loading twice has no further effect."""
    shell.register_magics(DpnbMagics)
    for command in ("%dpnb", "%%dpnb"):
        shell.set_hook("complete_command", complete, str_key=command)
    column_completion.install(shell)
    shorten(shell)
    if getattr(shell, "kernel", None) is None:
        return  # a terminal: text output suffices
    _unregister(shell)
    for listener in (explain_error, say_promises):
        shell.events.register("post_run_cell", listener)
    formatter = shell.display_formatter.mimebundle_formatter
    formatter.for_type(BaseSession, _gauges)
    shell.display_formatter.ipython_display_formatter.for_type(Query, _show)
    open_sessions.set_cell_provider(cell_context.current_cell, cell_context.when_identified)
    progress.show_by(begin_line)
    panel.install(panel.sessions, panel.log, _on_request)
    open_sessions.subscribe(panel.publish)
    open_sessions.subscribe(_watch.wake)
    import_later()


def unload(shell: Any) -> None:
    """Disable the live output and the magics."""
    open_sessions.unsubscribe(panel.publish)
    open_sessions.unsubscribe(_watch.wake)
    open_sessions.set_cell_provider(None)
    progress.show_by(None)
    for where in ("line", "cell"):
        shell.magics_manager.magics[where].pop("dpnb", None)
    for command in ("%dpnb", "%%dpnb"):
        shell.strdispatchers["complete_command"].strs.pop(command, None)
    shell.display_formatter.mimebundle_formatter.type_printers.pop(BaseSession, None)
    shell.display_formatter.ipython_display_formatter.type_printers.pop(Query, None)
    column_completion.remove(shell)
    lengthen()
    _unregister(shell)


_promised: set[str] = set()
"""The sessions whose promise was said."""


def say_promises(_: Any) -> None:
    """Say below a cell that made sessions for whom their promise holds: it is easily forgotten to declare that."""
    for session in open_sessions.sessions():
        if session.id not in _promised and isinstance(session, BaseSession):
            _promised.add(session.id)
            core = session._core
            if core.statement_prefix or core.part is not None:
                continue  # a part of what was said
            promise, unit = snapshot.promise_of(core), core.tables.words
            words = core.guarantee if promise == core.guarantee else f"for {unit}, {promise}"
            print(f"dpnb session {printable(core.name)}: {words}")  # noqa: T201  (output for the user)


def explain_error(result: Any) -> None:
    """Display an explanation below an error of dpnb's, with a link to the panel if there is more to read."""
    error = result.error_in_exec
    if not isinstance(error, DpnbError):
        return
    explanation = explanation_for(error)
    is_voila = cell_context.is_voila()
    linked = explanation.more and cell_context.has_live_widgets() and not is_voila
    text = f"{error}. {explanation.text}" if is_voila else explanation.text
    link = explanation_link(explanation.id, "More in the panel") if linked else ""
    title = f'<span style="{FAINT}">{escape(explanation.title)}:</span>'
    more = link or f" {escape(text)}"  # the error itself is above, and the panel has the rest
    html = f'<div style="{STYLE}">{title}{more}</div>'
    display(  # type: ignore[no-untyped-call]
        {"text/plain": f"{explanation.title}: {text}", "text/html": html}, raw=True
    )


def _on_request(request: PanelRequest) -> None:
    if cell_context.note_message(request):
        panel.publish()  # charges may have been assigned to a cell
    if isinstance(request, FollowLedgers):
        _watch.follow(request.page, request.is_visible)
    elif isinstance(request, RequestComparison):
        panel.compare(request.session, is_shown=request.is_shown)
        panel.publish()
    elif isinstance(request, Reconnect):
        panel.reconnect()


def _unregister(shell: Any) -> None:
    for listener in (explain_error, say_promises):
        if listener in shell.events.callbacks["post_run_cell"]:
            shell.events.unregister("post_run_cell", listener)


def _gauges(session: BaseSession) -> dict[str, object] | None:
    if not cell_context.has_live_widgets():
        return None
    from dpnb.notebook import widgets  # imports ipywidgets, so only when gauges are displayed

    open_sessions.note_shown(session)
    now = snapshot.snapshot(session, compared=True)
    return widgets.mimebundle(now, text=sessions.render_text(now), html=sessions.render_html(now))


def _show(query: Query) -> None:
    if not cell_context.has_live_widgets():
        display(picker_state.static_output(query), raw=True)  # type: ignore[no-untyped-call]
        return
    from dpnb.notebook import picker  # likewise

    picker.show(query)
