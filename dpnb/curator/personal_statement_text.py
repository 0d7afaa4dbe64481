"""A person's statement as plain text, for that person alone."""

from __future__ import annotations

import textwrap
from fractions import Fraction

from dpnb._core.session_explanation import describe_guarantee
from dpnb.accounting.exact import (
    decimal_down,
    decimal_sqrt_down,
    decimal_sqrt_up,
    decimal_up,
    display_down,
    display_up,
    of_budget,
)
from dpnb.accounting.individual import OnExhausted
from dpnb.curator.personal_statement import Statement, StatementEntry
from dpnb.errors import printable
from dpnb.render.numbers import format_percent_down, format_percent_up
from dpnb.render.tables import facts_text, table_text

WIDTH = 100
BEGIN = 14
"""The text column in which facts begin."""

TIME = len("2000-01-01T00:00:00")

ROUNDING_TOLERANCE = Fraction(1, 10**10)
"""A remainder below this fraction of the budget is due to rounding."""

ALONE = "For this person alone: do not show it to the analyst."

EXHAUSTED: dict[OnExhausted, str] = {
    "skip": "A unit that cannot pay for a query is excluded from it, and may take part in a cheaper one.",
    "drop": "A unit that cannot pay for a query is excluded from it and from all later queries.",
    "clip": "The contribution of a unit that cannot pay for a query is scaled down to what it can pay for.",
}


def statement_text(statement: Statement) -> str:
    """The whole statement.

    In text written by analysts, such as names of groups, characters that move a terminal's cursor are escaped.
    """
    notice = [] if statement.metadata.notice is None else [f"!!! {statement.metadata.notice} !!!", ""]
    title = [f"Statement for {statement.unit}", ALONE, ""]
    facts = facts_text([(name, printable(text)) for name, text in _facts(statement)], BEGIN, WIDTH - BEGIN)
    end = ["", notice[0]] if notice else []
    lines = [*notice, *title, *facts, "", *_table(statement), "", *_notes(statement), *end]
    return "\n".join(map(printable, lines))


def _facts(statement: Statement) -> list[tuple[str, str]]:
    guarantee, unit = statement.account.guarantee, statement.metadata.tables.words
    versions = {entry.version for entry in statement.entries}
    never = "" if statement.version in versions or not versions else ", of which the ledger has no query"
    return [
        ("session", f"{statement.metadata.name}; {len(statement.entries)} rows in the ledger {statement.ledger}"),
        ("table", f"version {statement.version!r}{never}"),
        *statement.versions,
        ("guarantee", describe_guarantee(guarantee, unit)),
        (
            "accounting",
            "Each unit has the whole budget and is charged only for what a query could reveal about it. "
            + EXHAUSTED[statement.on_exhausted],
        ),
        ("spent", _spent(statement)),
        ("left", _left(statement)),
    ]


def _spent(statement: Statement) -> str:
    share = f"{format_percent_up(decimal_up(statement.spent / statement.budget))} of the budget"
    name, spent = _amount(statement, statement.spent, up=True)
    _, budget = _amount(statement, statement.budget, up=False)
    if statement.spent > statement.budget:
        return (
            f"{name} {display_up(spent)}, more than the budget of {display_down(budget)}: {share}. Queries of other "
            "versions of the table are counted at the worst case, since this person's rows there are unknown."
        )
    if statement.budget - statement.spent <= ROUNDING_TOLERANCE * statement.budget:
        return f"{name} {display_up(spent)}, all of it"
    return f"{of_budget(name, spent, budget)}: {share}"


def _left(statement: Statement) -> str:
    if statement.excluded_since is not None:
        return f"nothing that can be used: excluded permanently since query {statement.excluded_since}"
    if statement.left <= ROUNDING_TOLERANCE * statement.budget:
        return "nothing"
    name, left = _amount(statement, statement.left, up=False)
    fraction = format_percent_down(decimal_down(statement.left / statement.budget))
    return f"{name} {display_down(left)}: {fraction} of the budget"


def _amount(statement: Statement, mu_squared: Fraction, *, up: bool) -> tuple[str, float]:
    """A total in the measure of the filter, with the name of the measure."""
    if statement.account.guarantee.filter_name == "zcdp":
        return "rho", (decimal_up if up else decimal_down)(mu_squared / 2)
    return "mu", (decimal_sqrt_up if up else decimal_sqrt_down)(mu_squared)


def _table(statement: Statement) -> list[str]:
    if not statement.entries:
        return ["There are no queries yet."]
    head = ("no.", "time (UTC)", "in full", "charged", "share", "so far", "worst case", "this person", "query")
    rows = [
        (
            str(entry.id),
            entry.time[:TIME].replace("T", " "),
            _mu(entry.full_cost) if entry.participation not in ("worst case", "free") else "-",
            _mu(entry.full_cost if entry.participation == "in full" else entry.paid),
            format_percent_up(decimal_up(entry.paid / statement.budget)),
            format_percent_up(decimal_up(entry.tracked / statement.budget)),
            format_percent_up(decimal_up(entry.worst_case / statement.budget)),
            _participation(entry, statement),
            printable(entry.query),
        )
        for entry in statement.entries
    ]
    return table_text([head, *rows], left=(1, 7, 8))


def _mu(mu_squared: Fraction) -> str:
    return display_up(decimal_sqrt_up(mu_squared)) if mu_squared else "0"


def _participation(entry: StatementEntry, statement: Statement) -> str:
    words = {
        "in full": "took part",
        "in part": "scaled down to the remaining budget",
        "excluded": "excluded: not enough left",
        "not affected": "not affected",
        "worst case": f"charged the worst case of version {entry.version!r}",
        "free": "free for every unit",
    }[entry.participation]
    if entry.participation == "excluded" and statement.excluded_since not in (None, entry.id):
        words = f"excluded since query {statement.excluded_since}"
    return words if entry.answered else f"{words}; never answered"


def _notes(statement: Statement) -> list[str]:
    notes = [
        "In full: the cost for this person of taking part in full; charged: the actual cost. Both are a mu, rounded "
        "up; the squares of mu add up, and so do the shares of the budget.",
        "So far: at most this share, in steps of 5%. All answers up to this query are, for this person, inside every "
        "budget that was fixed beforehand and is at least as large (Feldman and Zrnic 2021, Algorithm 5). Worst case: "
        "the same for a person whom every query affects in full; the analyst sees the worst case only.",
        "Correct if the file is the table that the session was given, with values of the same types.",
    ]
    if any(entry.delta for entry in statement.entries):
        notes.append("Discovering groups also has a delta, which every unit is charged equally and is not listed here.")
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]
