"""The rows of a table as curators and auditors see them, and the whole plan of a row, without answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dpnb._browser.curation import AuditPage, AuditRow, PlanPage
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history.words import row_in_words
from dpnb._core.pricing.query_state import plan_of, request_of
from dpnb._plan.measurements import PlainView
from dpnb._plan.plan import columns_read, describe_plan, shortened_words
from dpnb._request import LaunchMechanism, Request, RequestBudget, request_from
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import (
    ABOUT_BUDGET,
    ABOUT_TABLE,
    ACT,
    BUDGET_REQUEST,
    COMPARISON,
    LAUNCH,
    REDACTION,
    RELEASE,
    SELECTION,
    STATEMENT,
    TABLE_FILES,
    VERSION,
)
from dpnb.service.opening import OpenTable
from dpnb.session.backup import TAKEN

MAX_ROWS = 200
"""Rows of a page."""

HAVE_PLANS = frozenset((RELEASE, SELECTION, COMPARISON, LAUNCH, BUDGET_REQUEST))
"""Kinds of rows that have plans, or may have: those that an analyst requested."""


def audit_page(table: OpenTable, after: int, pages: int = 1) -> AuditPage:
    """The rows after a number: at most that many pages in one reply."""
    account = table.session._core.account
    ids = [one.id for one in account.ledger.summaries(after=after)]
    page, more = ids[: pages * MAX_ROWS], len(ids) > pages * MAX_ROWS
    hashes = {stored["id"]: str(stored["hash"]) for stored in account.ledger.stored(page)}
    rows = tuple(_row(account, charge, hashes[charge.id]) for charge in account.ledger.by_id(tuple(page)))
    return AuditPage(rows, more)


def _row(account: Accountant, charge: Charge, chained: str) -> AuditRow:
    return AuditRow(
        id=charge.id,
        time=charge.time,
        kind=charge.kind,
        node=charge.node,
        status=_status(account, charge),
        words=printable(words_of(account, charge)),
        cost=cost_of(charge),
        hash=chained,
        actor=None if charge.origin is None else printable(charge.origin.actor),
        has_plan=charge.kind in HAVE_PLANS,
    )


def _status(account: Accountant, charge: Charge) -> str:
    """What became of a row, in a word: acts release nothing, and a request for budget is decided.

    That an approval has lapsed since is no event of the log.
    """
    if charge.kind == BUDGET_REQUEST:
        return account.tree.budget_requests()[charge.id].status("")
    return "recorded" if charge.kind in (*ABOUT_BUDGET, *ABOUT_TABLE) else charge.status


def cost_of(charge: Charge) -> str:
    """What a row was charged, in words."""
    return charge.loss.words if charge.loss else "free"


ABOUT_TABLE_WORDS = {
    TABLE_FILES: "files of the table",
    VERSION: "declaration of the table",
    STATEMENT: "text of the disclosure statement",
    REDACTION: "key of the redacted ledger",
}
"""Rows about the table in words."""


def words_of(account: Accountant, charge: Charge) -> str:
    """What was requested, or whose part of the budget was changed: never what came of it."""
    if charge.kind == ACT:
        part = account.tree.grant_of(charge.node)
        return f"{'' if part is None else f'{part.level} {part.name}: '}{row_in_words(charge)}"
    if charge.kind == RELEASE:
        plan = plan_of(charge)
        return shortened_words(describe_plan(plan, request_of(charge).view), plan)
    if charge.kind == COMPARISON:
        plan = plan_of(charge)
        return f"comparison of the {shortened_words(describe_plan(plan, PlainView()), plan)}"
    if charge.kind == SELECTION:
        return shortened_words(row_in_words(charge), plan_of(charge))
    if charge.kind in ABOUT_TABLE_WORDS:
        of = f" for version {charge.table_version!r}" if charge.kind in (TABLE_FILES, VERSION) else ""
        taken = (charge.launch or {}).get(TAKEN)
        return f"{ABOUT_TABLE_WORDS[charge.kind]}{of}{f', read from databases at {taken}' if taken else ''}"
    return row_in_words(charge)


# --- the whole plan of a row ------------------------------------------------------------------------------------------


MAX_CHARACTERS = 200_000
"""Characters of a plan, and of all plans of a row together."""

WIDTH = 100
"""Characters of a list or an object that is written on one line."""


def plan_page(table: OpenTable, number: int) -> PlanPage:
    """The plans of a row."""
    account = table.session._core.account
    with account.ledger.lock.checked():
        charge = next(iter(account.ledger.by_id((number,))), None)
    if charge is None or charge.kind not in HAVE_PLANS:
        raise InvalidValueError(
            f"row: must be that of a query, a launch or a request for budget; got {number}; the log lists the rows"
        )
    with refuse_unreadable(f"row {number}"):
        plans = list(_plans(charge))
    return PlanPage(number, tuple(_bounded(one, MAX_CHARACTERS // len(plans)) for one in plans))


def _plans(charge: Charge) -> Iterator[str]:
    request = request_from(charge.request)
    match request:
        case RequestBudget():
            for release in request.releases:
                yield _query(release)
        case LaunchMechanism():
            yield _text(json.loads(request.text))
        case _:
            yield _query(request)


def _query(request: Request) -> str:
    stored = json.loads(request.text)
    del stored["request"]
    return _text({"reads": columns_read(request.plan), **stored})  # type: ignore[attr-defined]  # all others have one


def _text(value: Any) -> str:
    return "\n".join(map(printable, _lines(value, "")))


def _lines(value: Any, indent: str) -> list[str]:
    """A JSON value, whose small parts are each on one line."""
    compact = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(compact) <= WIDTH:
        return [indent + compact]
    inside = f"{indent} "
    if isinstance(value, list) and not any(isinstance(part, dict) for part in value):
        texts = [json.dumps(part, ensure_ascii=False) for part in value]
        if max(map(len, texts)) <= WIDTH:
            return [f"{indent}[", *_filled(texts, inside), f"{indent}]"]
    if isinstance(value, dict):
        named = [(f"{json.dumps(name, ensure_ascii=False)}: ", part) for name, part in value.items()]
    else:
        named = [("", part) for part in value]
    lines: list[str] = []
    for name, part in named:
        first, *rest = _lines(part, inside)
        lines += [f"{inside}{name}{first.removeprefix(inside)}", *rest]
        lines[-1] += ","
    lines[-1] = lines[-1].removesuffix(",")
    start, end = "{}" if isinstance(value, dict) else "[]"
    return [indent + start, *lines, indent + end]


def _filled(texts: list[str], indent: str) -> list[str]:
    """The parts of a list, several on each line."""
    lines = [indent + texts[0]]
    for text in texts[1:]:
        if len(lines[-1]) + len(text) + 2 > WIDTH:
            lines[-1] += ","
            lines.append(indent + text)
        else:
            lines[-1] += f", {text}"
    return lines


def _bounded(text: str, limit: int) -> str:
    """A text of limited length: its beginning, which names the columns, and what is missing."""
    return text if len(text) <= limit else f"{text[:limit]}\n... and {len(text) - limit:,} more characters"
