"""``python -m dpnb people``: who has a part of the budget of a table of a running service, in a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing

import msgspec

from dpnb._protocol.cockpit import PeopleChanged
from dpnb._protocol.curation import PartState, TableState
from dpnb.errors import printable
from dpnb.remote.connect import checked_table
from dpnb.remote.deciding import channel_to, confirm, exact, lines_text, requests
from dpnb.render.numbers import format_percent_down, format_percent_up
from dpnb.wire.acts import AddAnalyst, AnyPersonAct, Components, HandOver, RemoveAnalyst

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
        return people_text(requests(options.address, options.table))
    act = _act(options, amount)
    sys.stderr.write(f"{_what(act)}\n")
    if not options.yes:
        confirm("Do it?", "act")
    with closing(channel_to(options.address)) as channel:
        path = f"tables/{checked_table(options.table)}/people"
        changed = channel.send(path, msgspec.json.encode(act), PeopleChanged)
    if changed.token is None:
        return people_text(changed.table)
    name = act.to if isinstance(act, HandOver) else act.name
    sys.stderr.write(
        f"The token of {printable(name)}, which is not shown again. Send it to {printable(name)} as you would send a "
        "password. It is given in the environment variable DPNB_TOKEN or at the prompt of dpnb.connect, never in a "
        "notebook:\n"
    )
    return changed.token


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


def people_text(state: TableState) -> str:
    """The analysts and projects of a table, and what is left for others."""
    lines = [_part_line(part) for part in state.parts]
    if state.mode is None:
        lines.append("the budget is not divided: everybody with a token may use all of it")
    if state.free is not None:
        lines.append(f"{format_percent_down(state.free)} of the budget is left for other parts")
    return lines_text(lines)


def _part_line(part: PartState) -> str:
    of = "" if part.project is None else f" in {part.project}"
    amount = part.ceiling or part.cap
    limit = "no limit of its own" if amount is None else f"at most {exact(amount)}"
    used = "unused" if part.is_unused else f"{format_percent_up(part.share)} spent"
    free = "" if part.free is None else f"; {format_percent_down(part.free)} left for other parts"
    ended = "; removed" if part.is_removed else "; revoked" if part.is_revoked else ""
    return f"{part.level} {part.name}{of}: {limit}; {used}{free}{ended}"
