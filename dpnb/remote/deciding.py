"""What auditors and curators ask a running service, and decide, in a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from dpnb._browser.curation import (
    Amount,
    AuditPage,
    AuditRow,
    PartState,
    PeopleChanged,
    PlanPage,
    RequestState,
    TableState,
)
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger.charge import ABOUT_BUDGET
from dpnb.remote.connect import checked_table, open_channel
from dpnb.remote.hub import hub_token
from dpnb.remote.tokens import ask_for_token, find_token, origin_of
from dpnb.render.numbers import format_percent_down, format_percent_up
from dpnb.wire.limits import MAX_NAME
from dpnb.wire.messages import AddAnalyst, AnyAct, AnyPersonAct, Approve, Components, Decline, HandOver, RemoveAnalyst

if TYPE_CHECKING:
    from dpnb.remote.channel import Channel


PENDING = "pending"

ABOUT_PEOPLE = """\
Show, add and remove the analysts of a table of a running service, and hand a part over. Each act is shown first and
asked once; it is a row of the ledger, and stays after a restart.

add gives a person a part of the budget, in reserved mode a ceiling, which is fixed, in pooled mode a cap or none, and a
token if they have none, which is shown once. A person who was removed is added without an amount, and gets their own
part back. remove ends all access: nothing more is charged to the part, and the tokens are revoked unless another table
of the service is open to the person. hand-over gives a part of which nothing was charged to another person, in reserved
mode: the ceilings add up to the same at every moment. For a token with the role curator or owner, and to list also
auditor, in DPNB_TOKEN or at the prompt.
"""

ACTIONS = (
    ("list", "show them, and what is left for others"),
    ("add", "add an analyst, or add a removed one again"),
    ("remove", "remove an analyst, with the tokens"),
    ("hand-over", "give an unused part to another person"),
)


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
        return "\n".join([*lines, budget_text(_state(channel, table))])


def plans(address: str, table: str, row: int) -> str:
    """The whole plans of a row, by its number in `history`, for the same roles; never what was answered."""
    with closing(channel_to(address)) as channel:
        page = channel.get(f"tables/{checked_table(table)}/plan", PlanPage, row=row)
    return "\n\n".join("\n".join(map(printable, text.split("\n"))) for text in page.plans)


def requests(address: str, table: str) -> TableState:
    """The state of a table, for the roles of `history`."""
    with closing(channel_to(address)) as channel:
        return _state(channel, table)


def change(address: str, table: str, act: AnyAct) -> TableState:
    """Do an act about a table, such as freezing it, and return its state; for the roles ``curator`` and ``owner``."""
    with closing(channel_to(address)) as channel:
        return send_act(channel, table, act)


def channel_to(address: str) -> Channel:
    """A connection with the token of an auditor or a curator."""
    origin = origin_of(address)
    # A kept token comes first: an auditor who has one may have no such scope of JupyterHub.
    return open_channel(origin, find_token(origin) or hub_token(origin, curates=True) or ask_for_token(origin))


def send_act(channel: Channel, table: str, act: AnyAct) -> TableState:
    """Do an act of a curator."""
    return channel.send(f"tables/{checked_table(table)}/acts", msgspec.json.encode(act), TableState)


def _state(channel: Channel, table: str) -> TableState:
    return channel.get(f"tables/{checked_table(table)}/state", TableState)


# --- decisions of curators --------------------------------------------------------------------------------------------


def decide(
    address: str,
    table: str,
    number: int,
    decision: Callable[[RequestState], Approve | Decline],
    *,
    is_confirmed: bool = False,
) -> str:
    """Show a request and decide it, confirmed on the terminal unless `is_confirmed`; roles are those of `change`."""
    with closing(channel_to(address)) as channel:
        pending = {one.number: one for one in _state(channel, table).requests if one.status == PENDING}
        if number not in pending:
            known = ", ".join(map(str, pending)) or "there are none"
            raise InvalidValueError(f"number: must be that of a pending request; got {number}; pending: {known}")
        one = pending[number]
        act = decision(one)
        say(_lines_text([*_request_lines(one), *_effect(one, act)]))
        if not is_confirmed:
            confirm("Approve it?" if isinstance(act, Approve) else "Decline it?", "request")
        state = send_act(channel, table, act)
    after = next((one for one in state.requests if one.number == number), one)
    caps = [part.cap or part.ceiling for part in state.parts if (part.level, part.name) == ("analyst", one.analyst)]
    now = [f"the cap of {one.analyst} is now {exact(cap)}" for cap in caps] if isinstance(act, Approve) else []
    return _lines_text([*now, _decided_line(after)])


def confirm(question: str, what: str) -> None:
    """Ask once in the terminal; `InvalidValueError` unless the answer is yes."""
    if not sys.stdin.isatty():
        raise InvalidValueError(
            f"--yes: required where nobody can be asked; got no terminal; add --yes after reading the {what}"
        )
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        done = "decided" if what == "request" else "done"
        raise InvalidValueError(f"the {what} was not {done}: the answer was not yes; nothing was changed")


def say(text: str) -> None:
    """Write a text and the end of its line to the terminal, whatever its encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


# --- a table in words -------------------------------------------------------------------------------------------------


def budget_text(state: TableState) -> str:
    """What is left of the budget, and whether the table is frozen."""
    left = state.spent if state.headroom is None else f"{format_percent_down(state.headroom)} of the budget is left"
    return _lines_text([left, "not frozen" if state.frozen is None else f"frozen: {state.frozen}"])


def requests_text(state: TableState) -> str:
    """The parts of the budget, the requests for more, and what runs or waits for the curator."""
    pending = [one for one in state.requests if one.status == PENDING]
    lines = []
    for part in state.parts:
        limits = [
            f"{name} {exact(one)}" for name, one in (("ceiling", part.ceiling), ("cap", part.cap)) if one is not None
        ]
        revoked = ", removed" if part.is_removed else ", revoked" if part.is_revoked else ""
        lines.append(f"{part.level} {part.name}: spent {exact(part.spent)}; {', '.join(limits) or 'no cap'}{revoked}")
    lines += [""] if lines else []
    lines += [line for one in pending for line in (*_request_lines(one), "")]
    lines.append(f"{len(pending)} request{'s' if len(pending) != 1 else ''} to decide")
    lines += [_decided_line(one) for one in state.requests if one.status != PENDING]
    lines += [
        f"row {one.row} of {one.analyst}, {one.time[:19]}Z: {one.words}; {one.cost}; {one.why}; resume it or leave it"
        for one in state.held
    ]
    if one := state.running:
        lines.append(f"number {one.number} of {one.analyst} runs: {one.call}, {one.seconds} s; {state.waiting} wait")
    return _lines_text(lines)


def _line(row: AuditRow) -> str:
    outcome = "" if row.kind in ABOUT_BUDGET else f"; {row.cost}; {row.status}"  # such rows have no cost
    return printable(f"{row.id:>6}  {row.time[:19]}Z  {row.actor or 'local'}: {row.words}{outcome}")


def _request_lines(one: RequestState) -> list[str]:
    return [
        f"request {one.number} of {one.analyst}, {one.time[:19]}Z: {one.why}",
        *(f"    {query.words} at {query.target}: {exact(query.cost)}, {query.error}" for query in one.queries),
        f"    together {exact(one.total)}; the cap is {exact(one.cap)}, and would be {exact(one.cap_after)}",
    ]


def _effect(one: RequestState, act: Approve | Decline) -> list[str]:
    if isinstance(act, Decline):
        return []
    named = {} if act.amount is None else msgspec.structs.asdict(act.amount)
    part = ", ".join(f"{name} {value}" for name, value in named.items() if value is not None)
    amount = f"a part of it: {part}" if named else f"all of it, {exact(one.total)}"
    return [f"    to approve: {amount}{'' if act.until is None else f', until {act.until}'}"]


def _decided_line(one: RequestState) -> str:
    granted = "" if one.granted is None else f", {exact(one.granted)} added to the cap"
    until = "" if one.until is None else f" until {one.until}"
    reason = f": {one.reason}" if one.reason else ""
    by = "" if one.decided_by is None else f" by {one.decided_by}"
    return f"request {one.number} of {one.analyst}: {one.status}{by}{granted}{until}{reason}"


def exact(amount: Amount | None) -> str:
    """All digits of an amount, as the options of the commands take them."""
    if amount is None:
        return "none"
    parts = ("mu", amount.mu or "0.0"), ("delta", amount.discovery_delta), ("epsilon", amount.pure_epsilon)
    return " and ".join(f"{name}={value}" for name, value in parts if value is not None)


def _lines_text(lines: list[str]) -> str:
    """Lines of a service, without what could control a terminal."""
    return "\n".join(printable(line[: 10 * MAX_NAME]) for line in lines)


def add_people(one: argparse.ArgumentParser, add_amount: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the actions to the parser of the command; `add_amount` adds the options of an amount."""
    actions = one.add_subparsers(required=True, dest="action", metavar="action")
    for action, short in ACTIONS:
        two = actions.add_parser(action, help=short, allow_abbrev=False)
        two.add_argument("address", metavar="ADDRESS", help="the address of the service, as for dpnb.connect")
        two.add_argument("table", metavar="TABLE", help="name of the table")
        if action != "list":
            two.add_argument("name", metavar="NAME", help="the analyst")
            two.add_argument("--yes", action="store_true", help="do not ask")
        if action == "hand-over":
            two.add_argument("--to", required=True, metavar="NAME", help="the person who gets the part")
        if action == "add":
            two.add_argument("--project", metavar="NAME", help="the project whose part it is taken from")
            add_amount(two)
        if action in ("add", "hand-over"):
            two.add_argument("--expires", metavar="WHEN", help="of the token: a date, or a period such as 30d or 8w")
            two.add_argument("--no-token", action="store_true", help="no token, as for a user of JupyterHub")


def people(options: argparse.Namespace, amount: Callable[[argparse.Namespace], Components | None]) -> str:
    """Do an action, and return what the terminal shows: the people, or a new token alone."""
    if options.action == "list":
        return _people_text(requests(options.address, options.table))
    act = _act(options, amount)
    sys.stderr.write(f"{_what(act)}\n")
    if not options.yes:
        confirm("Do it?", "act")
    with closing(channel_to(options.address)) as channel:
        path = f"tables/{checked_table(options.table)}/people"
        changed = channel.send(path, msgspec.json.encode(act), PeopleChanged)
    if changed.token is None:
        return _people_text(changed.table)
    name = act.to if isinstance(act, HandOver) else act.name
    sys.stderr.write(token_handed_over(printable(name)))
    return changed.token


def token_handed_over(name: str) -> str:
    """What is said before a new token is shown."""
    return (
        f"The token of {name}, which is not shown again. Send it to {name} as you would send a password. It is given "
        "in the environment variable DPNB_TOKEN or at the prompt of dpnb.connect, never in a notebook:\n"
    )


def _act(options: argparse.Namespace, amount: Callable[[argparse.Namespace], Components | None]) -> AnyPersonAct:
    if options.action == "remove":
        return RemoveAnalyst(options.name)
    if options.action == "hand-over":
        return HandOver(options.name, options.to, options.expires, not options.no_token)
    return AddAnalyst(options.name, options.project, amount(options), options.expires, not options.no_token)


def _what(act: AnyPersonAct) -> str:
    """What an act does, before it is asked."""
    name = printable(act.name)
    if isinstance(act, RemoveAnalyst):
        return (
            f"{name} can then no longer open the table. What was charged stays charged, and the part stays theirs. "
            "The tokens are revoked, unless another table of the service is open to them."
        )
    if isinstance(act, HandOver):
        to = printable(act.to)
        return (
            f"{to} then has the ceiling of {name}, who can no longer open the table. This is refused if anything was "
            f"charged to {name}; so {to} learns that nothing was. Use nothing that other analysts asked or were told."
        )
    if act.amount is None:
        return f"{name} then has access: to the part from which they were removed, or in pooled mode without a cap."
    given = {key: value for key, value in msgspec.structs.asdict(act.amount).items() if value is not None}
    amount = ", ".join(f"{key} {value}" for key, value in given.items())
    of = "the budget" if act.project is None else f"the project {act.project}"
    return printable(f"{name} then has a part of {of}: {amount}. In reserved mode it is fixed.")


def _people_text(state: TableState) -> str:
    """The analysts and projects of a table, and what is left for others."""
    lines = [_part_line(part) for part in state.parts]
    if state.mode is None:
        lines.append("the budget is not divided: everybody with a token may use all of it")
    if state.free is not None:
        lines.append(f"{format_percent_down(state.free)} of the budget is left for other parts")
    return _lines_text(lines)


def _part_line(part: PartState) -> str:
    of = "" if part.project is None else f" in {part.project}"
    amount = part.ceiling or part.cap
    limit = "no limit of its own" if amount is None else f"at most {exact(amount)}"
    used = "unused" if part.is_unused else f"{format_percent_up(part.share)} spent"
    free = "" if part.free is None else f"; {format_percent_down(part.free)} left for other parts"
    ended = "; removed" if part.is_removed else "; revoked" if part.is_revoked else ""
    return f"{part.level} {part.name}{of}: {limit}; {used}{free}{ended}"
