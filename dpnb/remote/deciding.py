"""What auditors and curators ask a running service, and decide, in a terminal."""

from __future__ import annotations

import sys
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from dpnb.errors import InvalidValueError, printable
from dpnb.ledger.charge import ABOUT_BUDGET
from dpnb.remote.connect import checked_table, open_channel
from dpnb.remote.hub import hub_token
from dpnb.remote.origin import origin_of
from dpnb.remote.tokens import ask_for_token, find_token
from dpnb.wire.acts import (
    AnyAct,
    Approve,
    AuditPage,
    AuditRow,
    Components,
    Decline,
    HeldState,
    PartState,
    PlanPage,
    RequestState,
    TableState,
)
from dpnb.wire.limits import MAX_NAME

if TYPE_CHECKING:
    from dpnb.remote.channel import Channel


# --- questions of auditors and curators -------------------------------------------------------------------------------


def history(address: str, table: str) -> str:
    """Who requested what of a table, in words, oldest first; never what was answered.

    For the roles ``auditor``, ``curator`` and ``owner``; `address` and `table` are as for `dpnb.connect`.
    """
    lines: list[str] = []
    with closing(channel_to(address)) as channel:
        after, page = 0, AuditPage((), more=True)
        while page.more:
            page = channel.get(f"tables/{checked_table(table)}/audit", AuditPage, after=after)
            lines += map(_line, page.rows)
            after = page.rows[-1].id if page.rows else after
    return "\n".join([*lines, *_state_lines(page)])


def plans(address: str, table: str, row: int) -> str:
    """The whole plans of a row: what was requested, with its arguments; never what was answered.

    `row` is its number as `history` shows it; the roles are those of `history`.
    """
    with closing(channel_to(address)) as channel:
        page = channel.get(f"tables/{checked_table(table)}/plan", PlanPage, row=row)
    return "\n\n".join("\n".join(map(printable, text.split("\n"))) for text in page.plans)


def change(address: str, table: str, act: AnyAct) -> str:
    """Do an act about a table, such as freezing it, and return its state in words.

    For the roles ``curator`` and ``owner``.
    """
    with closing(channel_to(address)) as channel:
        return "\n".join(_state_lines(send_act(channel, table, act)))


def channel_to(address: str) -> Channel:
    """A connection with the token of an auditor or a curator."""
    origin = origin_of(address)
    # A kept token comes first: an auditor who has one may have no such scope of JupyterHub.
    return open_channel(origin, find_token(origin) or hub_token(origin, curates=True) or ask_for_token(origin))


def _line(row: AuditRow) -> str:
    outcome = "" if row.kind in ABOUT_BUDGET else f"; {row.cost}; {row.status}"  # such rows have no cost
    return printable(f"{row.id:>6}  {row.time[:19]}Z  {row.actor or 'local'}: {row.words}{outcome}")


def _state_lines(page: AuditPage) -> list[str]:
    frozen = "not frozen" if page.frozen is None else f"frozen: {page.frozen}"
    return [printable(page.spent), printable(frozen)]


# --- decisions of curators --------------------------------------------------------------------------------------------


def requests(address: str, table: str) -> str:
    """The requests for budget of a table, the parts of its budget, and what runs or waits for the curator, in words.

    For the roles ``auditor``, ``curator`` and ``owner``; `address` and `table` are as for `dpnb.connect`.
    """
    with closing(channel_to(address)) as channel:
        state = _state(channel, table)
    pending, decided = state.requests[: state.pending], state.requests[state.pending :]
    lines = [*map(_part_line, state.parts), ""] if state.parts else []
    lines += [text for one in pending for text in (*_lines(one), "")]
    lines.append(f"{state.pending} request{'s' if state.pending != 1 else ''} to decide")
    lines += [_decided_line(one) for one in decided]
    lines += [*map(_held_line, state.held), *_running_lines(state)]
    return "\n".join(map(_shown, lines))


def decide(
    address: str,
    table: str,
    number: int,
    *,
    is_approved: bool,
    amount: Components | None = None,
    until: datetime | None = None,
    why: str = "",
    is_confirmed: bool = False,
) -> str:
    """Show a request and decide it, after a confirmation on the terminal unless `is_confirmed`.

    For the roles ``curator`` and ``owner``; `amount`, `until` and `why` are as for `dpnb.wire.acts.Approve`.
    """
    with closing(channel_to(address)) as channel:
        state = _state(channel, table)
        pending = {one.number: one for one in state.requests[: state.pending]}
        if number not in pending:
            known = ", ".join(map(str, pending)) or "there are none"
            raise InvalidValueError(f"number: must be that of a pending request; got {number}; pending: {known}")
        one = pending[number]
        act = _act(one, is_approved, amount, until, why)
        _say("\n".join(map(_shown, [*_lines(one), *_effect(one, act)])))
        if not is_confirmed:
            _confirm("Approve it?" if is_approved else "Decline it?")
        send_act(channel, table, act)
        after = next((one for one in _state(channel, table).requests if one.number == number), one)
    return _shown(_decided_line(after))


def send_act(channel: Channel, table: str, act: AnyAct) -> AuditPage:
    """Do an act of a curator."""
    return channel.send(f"tables/{checked_table(table)}/acts", msgspec.json.encode(act), AuditPage)


def _act(
    one: RequestState, is_approved: bool, amount: Components | None, until: datetime | None, why: str
) -> Approve | Decline:
    if not is_approved:
        return Decline(one.number, one.digest, why)
    return Approve(one.number, one.digest, amount, None if until is None else until.isoformat(), why)


def _state(channel: Channel, table: str) -> TableState:
    return channel.get(f"tables/{checked_table(table)}/state", TableState)


def _lines(one: RequestState) -> list[str]:
    return [
        f"request {one.number} of {one.analyst}, {one.time[:19]}Z: {one.why}",
        *(f"    {query.words} at {query.target}: {query.cost}, {query.error}" for query in one.queries),
        f"    together {one.total}; the cap is {one.cap or 'none'}, and would be {one.cap_after or 'none'}",
    ]


def _effect(one: RequestState, act: Approve | Decline) -> list[str]:
    if isinstance(act, Decline):
        return []
    amount = f"all of it, {one.total}" if act.amount is None else f"a part of it: {_words(act.amount)}"
    return [f"    to approve: {amount}{'' if act.until is None else f', until {act.until}'}"]


def _words(amount: Components) -> str:
    return ", ".join(f"{name} {value}" for name, value in msgspec.structs.asdict(amount).items() if value is not None)


def _decided_line(one: RequestState) -> str:
    granted = "" if one.granted is None else f", {one.granted} added to the cap"
    until = "" if one.until is None else f" until {one.until}"
    reason = f": {one.reason}" if one.reason else ""
    by = "" if one.decided_by is None else f" by {one.decided_by}"
    return f"request {one.number} of {one.analyst}: {one.status}{by}{granted}{until}{reason}"


def _held_line(one: HeldState) -> str:
    return (
        f"row {one.row} of {one.analyst}, {one.time[:19]}Z: {one.words}; {one.cost}; {one.why}; resume it or leave it"
    )


def _running_lines(state: TableState) -> list[str]:
    one = state.running
    if one is None:
        return []
    return [f"number {one.number} of {one.analyst} runs: {one.call}, {one.seconds} s; {state.waiting} wait"]


def _part_line(one: PartState) -> str:
    limits = [f"{name} {words}" for name, words in (("ceiling", one.ceiling), ("cap", one.cap)) if words is not None]
    revoked = ", revoked" if one.is_revoked else ""
    return f"{one.level} {one.name}: spent {one.spent}; {', '.join(limits) or 'no cap'}{revoked}"


def _shown(line: str) -> str:
    """A line of a service, without what could control a terminal."""
    return printable(line[: 10 * MAX_NAME])


def _confirm(question: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidValueError(
            "--yes: required where nobody can be asked; got no terminal; add --yes after reading the request"
        )
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidValueError("the request was not decided: the answer was not yes; nothing was changed")


def _say(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
