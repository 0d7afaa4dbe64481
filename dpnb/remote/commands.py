"""The commands of ``python -m dpnb`` that auditors and curators give to a running service."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime

from dpnb._browser.curation import RequestState, TableState
from dpnb.errors import InvalidValueError
from dpnb.remote.deciding import (
    ABOUT_PEOPLE,
    add_people,
    budget_text,
    change,
    decide,
    history,
    people,
    plans,
    requests,
    requests_text,
)
from dpnb.wire.limits import moment_from_text
from dpnb.wire.messages import (
    AnyAct,
    Approve,
    Components,
    Decline,
    End,
    Freeze,
    Level,
    MoveCap,
    Restore,
    Resume,
    Revoke,
    Unfreeze,
)

TOKEN = "in DPNB_TOKEN or at the prompt."  # noqa: S105  (words)

ABOUT_HISTORY = f"""\
Show who requested what of a table of a running service, when, and what it cost; never what was answered. With --plan,
show the whole plan of a row instead. For a token with the role auditor, curator or owner, {TOKEN}
"""

ABOUT_FREEZE = f"""\
Freeze a table of a running service: every further charge is refused, with the reason, until unfreeze. Recorded answers
stay free. Both are rows of the ledger. For a token with the role curator or owner, {TOKEN}
"""

ABOUT_REQUESTS = f"""\
Show the parts of a table's budget, and the requests of analysts for a larger cap: who, why, which queries, what they
cost and their expected errors; then the charges that wait for resume, and the request that runs now. For a token with
the role auditor, curator or owner, {TOKEN}
"""

ABOUT_DECIDE = f"""\
Decide a request of an analyst for a larger cap: show it, ask once, and record the decision, which names what was shown.
An approval raises the analyst's cap by what was requested, or by a part of it, in reserved mode up to the ceiling at
most. With --until it lapses: from then on the cap is what it would be without it, and charges that were made stay. A
decision is made once; later, move the cap with grant. The analyst sees the decision and the reason. For a token with
the role curator or owner, {TOKEN}
"""

ABOUT_GRANT = f"""\
Move the cap of an analyst or a project of a running service, or remove it. That ends earlier approvals of requests. A
ceiling is fixed. The cap stays after a restart, until the settings name another one than before. For a token with the
role curator or owner, {TOKEN}
"""

ABOUT_REVOKE = f"""\
Refuse all further charges of an analyst or a project of a running service, until restore. Recorded answers stay free.
It stays after a restart. To end access altogether, revoke the token as well. For a token with the role curator or
owner, {TOKEN}
"""

ABOUT_END = f"""\
End the request that a table of a running service executes, by its number, as requests shows it. If it was charged, it
stays charged, and is not executed again until resume. The next request then runs. For a token with the role curator or
owner, {TOKEN}
"""

ABOUT_RESUME = f"""\
Let a charge be answered whose request ran when the service ended, or was ended by a curator, by the number of its row,
as requests shows it. It runs when its analyst repeats it, at no further cost. For a token with the role curator or
owner, {TOKEN}
"""

Command = Callable[[str, Callable[[argparse.Namespace], tuple[str, int]], int, str, str], argparse.ArgumentParser]


def add_commands(command: Command) -> None:
    """Add the commands to a parser.

    `command` adds one with its function, its exit code after a refusal, its description and a short one.
    """
    freeze = _act(lambda given: Freeze(given.why), budget_text)
    unfreeze = _act(lambda given: Unfreeze(), budget_text)
    revoke, restore = _act(lambda given: Revoke(*_whose(given))), _act(lambda given: Restore(*_whose(given)))
    end, resume = _act(lambda given: End(given.number)), _act(lambda given: Resume(given.number))
    for name, run, about, short in (
        ("history", _history, ABOUT_HISTORY, "show who requested what of a service, without answers"),
        ("freeze", freeze, ABOUT_FREEZE, "refuse all further charges of a table of a service"),
        ("unfreeze", unfreeze, ABOUT_FREEZE, "accept charges of a table again"),
        ("requests", _requests, ABOUT_REQUESTS, "show the requests for budget of a table of a service"),
        ("approve", _approve, ABOUT_DECIDE, "approve a request for budget, or a part of it"),
        ("decline", _decline, ABOUT_DECIDE, "decline a request for budget"),
        ("grant", _act(_moved_cap), ABOUT_GRANT, "move the cap of an analyst or a project"),
        ("revoke", revoke, ABOUT_REVOKE, "refuse all further charges of an analyst or a project"),
        ("restore", restore, ABOUT_REVOKE, "accept charges of an analyst or a project again"),
        ("people", _people, ABOUT_PEOPLE, "add and remove analysts, and hand over an unused part"),
        ("end", end, ABOUT_END, "end the request that a service executes"),
        ("resume", resume, ABOUT_RESUME, "let a charge without an answer be answered"),
    ):
        one = command(name, run, 2, about, short)
        if name == "people":
            add_people(one, lambda two: _add_amount(two, "the part", "of the project or the budget"))
            continue
        one.add_argument("address", metavar="ADDRESS", help="the address of the service, as for dpnb.connect")
        one.add_argument("table", metavar="TABLE", help="name of the table")
        if name == "history":
            one.add_argument("--plan", type=int, metavar="ROW", help="show the whole plan of the row with this number")
        if name == "freeze":
            one.add_argument("--why", required=True, metavar="TEXT", help="the reason, which analysts see")
        if name in ("approve", "decline"):
            _add_decision(one, name)
        if name in ("end", "resume"):
            one.add_argument("number", type=int, metavar="NUMBER", help="its number, as requests shows it")
        if name in ("grant", "revoke", "restore"):
            whose = one.add_mutually_exclusive_group(required=True)
            whose.add_argument("--analyst", metavar="NAME", help="the analyst")
            whose.add_argument("--project", metavar="NAME", help="the project")
        if name == "grant":
            one.add_argument("--no-cap", action="store_true", help="no cap but the ceiling, or the budget")
            _add_amount(one, "the cap", "of the ceiling; in pooled mode of the project's cap or the budget")


def _add_decision(one: argparse.ArgumentParser, name: str) -> None:
    one.add_argument("number", type=int, metavar="NUMBER", help="number of the request, as requests shows it")
    if name == "approve":
        _add_amount(one, "only a part", "of what was requested")
        one.add_argument("--until", metavar="WHEN", help="when it lapses: a date, or a period such as 12h, 30d or 8w")
    one.add_argument("--why", default="", metavar="TEXT", help="a reason, which the analyst sees")
    one.add_argument("--yes", action="store_true", help="do not ask")


def _add_amount(one: argparse.ArgumentParser, what: str, of: str) -> None:
    one.add_argument("--mu", metavar="MU", help=f"{what}: the component in GDP, a decimal or a fraction")
    one.add_argument("--discovery-delta", metavar="DELTA", help="the component for discovered groups")
    one.add_argument("--pure-epsilon", metavar="EPSILON", help="the component for mechanisms in pure DP")
    one.add_argument("--share", metavar="SHARE", help=f"instead, a share {of}")


def _amount(options: argparse.Namespace) -> Components | None:
    parts = options.mu, options.discovery_delta, options.pure_epsilon, options.share
    return None if parts == (None,) * 4 else Components(*parts)


def _history(options: argparse.Namespace) -> tuple[str, int]:
    if options.plan is not None:
        return plans(options.address, options.table, options.plan), 0
    return history(options.address, options.table), 0


def _requests(options: argparse.Namespace) -> tuple[str, int]:
    return requests_text(requests(options.address, options.table)), 0


def _approve(options: argparse.Namespace) -> tuple[str, int]:
    until = None if options.until is None else moment_from_text(options.until, "--until", datetime.now(UTC)).isoformat()
    return _decided(options, lambda one: Approve(one.number, one.digest, _amount(options), until, options.why))


def _decline(options: argparse.Namespace) -> tuple[str, int]:
    return _decided(options, lambda one: Decline(one.number, one.digest, options.why))


def _decided(options: argparse.Namespace, decision: Callable[[RequestState], Approve | Decline]) -> tuple[str, int]:
    return decide(options.address, options.table, options.number, decision, is_confirmed=options.yes), 0


def _people(options: argparse.Namespace) -> tuple[str, int]:
    return people(options, _amount), 0


def _whose(options: argparse.Namespace) -> tuple[Level, str]:
    return ("analyst", options.analyst) if options.project is None else ("project", options.project)


def _moved_cap(options: argparse.Namespace) -> MoveCap:
    amount = _amount(options)
    if (amount is None) != options.no_cap:
        raise InvalidValueError("grant: give a cap, as in --share 0.2 or --mu 0.1, or --no-cap; got both or neither")
    return MoveCap(*_whose(options), amount)


def _act(
    make: Callable[[argparse.Namespace], AnyAct], shown: Callable[[TableState], str] = requests_text
) -> Callable[[argparse.Namespace], tuple[str, int]]:
    """A command that does an act and shows what there is after it, by default requests and parts."""
    return lambda options: (shown(change(options.address, options.table, make(options))), 0)
