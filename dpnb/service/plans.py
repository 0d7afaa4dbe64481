"""The whole plan of a row, as curators and auditors read it: a request with its arguments, never an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dpnb._core.accountant.budget_request import plan_is_bound, requested_queries
from dpnb._plan.plan import Plan, columns_read
from dpnb.errors import InvalidValueError, PlanError, printable
from dpnb.ledger import Charge, refuse_unreadable
from dpnb.ledger.charge import BUDGET_REQUEST, COMPARISON, LAUNCH, RELEASE, SELECTION
from dpnb.service.opening import OpenTable
from dpnb.wire.acts import PlanPage

MAX_CHARACTERS = 200_000
"""Characters of a plan, and of all plans of a row together."""

WIDTH = 100
"""Characters of a list or an object that is written on one line."""

HAVE_PLANS = frozenset((RELEASE, SELECTION, COMPARISON, LAUNCH, BUDGET_REQUEST))
"""Kinds of rows that an analyst requested."""

NOT_RECORDED = "This request was recorded by a version of dpnb that did not record plans."


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
    if charge.kind == BUDGET_REQUEST:
        for query in requested_queries(charge.launch or {}):
            if not query.plan:
                yield NOT_RECORDED
            elif not plan_is_bound(query, charge.table_version):
                raise PlanError("plan: is not the one that the request was for")
            else:
                yield _query(query.plan, query.arguments)
    elif charge.kind == LAUNCH:
        launch = charge.launch or {}
        arguments = {name: _parsed(part) for name, part in launch["arguments"].items()}
        yield _text({"mechanism": launch["mechanism"], "name": launch["name"], "arguments": arguments})
    else:
        yield _query(charge.plan, charge.arguments)


def _query(plan: str, arguments: str) -> str:
    reads = columns_read(Plan.from_json(plan))
    return _text({"reads": reads, "plan": json.loads(plan), "arguments": json.loads(arguments)})


def _parsed(value: Any) -> Any:
    """An argument; a plan or view inside is stored as the text of its JSON."""
    return json.loads(value) if isinstance(value, str) and value.startswith("{") else value


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
