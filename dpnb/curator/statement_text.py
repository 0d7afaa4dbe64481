"""A person's statement as plain text, for that person alone."""

from __future__ import annotations

import textwrap
from fractions import Fraction

from dpnb._core.explain import describe_guarantee
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_sqrt_up, decimal_up, display_down, display_up
from dpnb.accounting.individual import OnExhausted
from dpnb.curator.statement import Statement, StatementEntry
from dpnb.errors import printable
from dpnb.render.numbers import format_percent_down, format_percent_up
from dpnb.render.tables import facts_text, table_text
from dpnb.session.snapshot import of_budget

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


def statement_text(made: Statement) -> str:
    """The whole statement.

    In text written by analysts, such as names of groups, characters that move a terminal's cursor are escaped.
    """
    loud = [] if made.metadata.notice is None else [f"!!! {made.metadata.notice} !!!", ""]
    title = [f"Statement for {made.who}", ALONE, ""]
    facts = facts_text([(name, printable(text)) for name, text in _facts(made)], BEGIN, WIDTH - BEGIN)
    lines = [*loud, *title, *facts, "", *_table(made), "", *_notes(made), *([""] if loud else []), *loud[:1]]
    return "\n".join(map(printable, lines))


def _facts(made: Statement) -> list[tuple[str, str]]:
    promise, unit = made.account.promise, made.metadata.tables.words
    versions = {line.version for line in made.lines}
    never = "" if made.version in versions or not versions else ", of which the ledger has no query"
    return [
        ("session", f"{made.metadata.name}; {len(made.lines)} rows in the ledger {made.ledger}"),
        ("table", f"version {made.version!r}{never}"),
        ("guarantee", describe_guarantee(promise, unit)),
        (
            "accounting",
            "Each unit has the whole budget and is charged only for what a query could reveal about it. "
            + EXHAUSTED[made.on_exhausted],
        ),
        ("spent", _spent(made)),
        ("left", _left(made)),
    ]


def _spent(made: Statement) -> str:
    share = f"{format_percent_up(decimal_up(made.spent / made.budget))} of the budget"
    name, spent = _amount(made, made.spent, up=True)
    _, budget = _amount(made, made.budget, up=False)
    if made.spent > made.budget:
        return (
            f"{name} {display_up(spent)}, more than the budget of {display_down(budget)}: {share}. Queries of other "
            "versions of the table are counted at the worst case, since this person's rows there are unknown."
        )
    if made.budget - made.spent <= ROUNDING_TOLERANCE * made.budget:
        return f"{name} {display_up(spent)}, all of it"
    return f"{of_budget(name, spent, budget)}: {share}"


def _left(made: Statement) -> str:
    if made.excluded_since is not None:
        return f"nothing that can be used: excluded permanently since query {made.excluded_since}"
    if made.left <= ROUNDING_TOLERANCE * made.budget:
        return "nothing"
    name, left = _amount(made, made.left, up=False)
    return f"{name} {display_down(left)}: {format_percent_down(decimal_down(made.left / made.budget))} of the budget"


def _amount(made: Statement, mu_squared: Fraction, *, up: bool) -> tuple[str, float]:
    """A total in the measure of the filter, with the name of the measure."""
    if made.account.promise.filter_name == "zcdp":
        return "rho", (decimal_up if up else decimal_down)(mu_squared / 2)
    return "mu", (decimal_sqrt_up if up else decimal_sqrt_down)(mu_squared)


def _table(made: Statement) -> list[str]:
    if not made.lines:
        return ["There are no queries yet."]
    head = ("no.", "time (UTC)", "in full", "charged", "share", "this person", "query")
    rows = [
        (
            str(line.id),
            line.time[:TIME].replace("T", " "),
            _mu(line.asked) if line.took not in ("worst case", "free") else "-",
            _mu(line.asked if line.took == "in full" else line.paid),
            format_percent_up(decimal_up(line.paid / made.budget)),
            _became(line, made),
            printable(line.question),
        )
        for line in made.lines
    ]
    return table_text([head, *rows], left=(1, 5, 6))


def _mu(mu_squared: Fraction) -> str:
    return display_up(decimal_sqrt_up(mu_squared)) if mu_squared else "0"


def _became(line: StatementEntry, made: Statement) -> str:
    """How the person took part, in words."""
    words = {
        "in full": "took part",
        "in part": "scaled down to the remaining budget",
        "left out": "excluded: not enough left",
        "untouched": "not affected",
        "worst case": f"charged the worst case of version {line.version!r}",
        "free": "free for every unit",
    }[line.took]
    if line.took == "left out" and made.excluded_since not in (None, line.id):
        words = f"excluded since query {made.excluded_since}"
    return words if line.answered else f"{words}; never answered"


def _notes(made: Statement) -> list[str]:
    notes = [
        "In full: the cost for this person of taking part in full; charged: the actual cost. Both are a mu, rounded "
        "up; the squares of mu add up, and so do the shares of the budget.",
        "Correct if the file is the table that the session was given, with values of the same types.",
    ]
    if any(line.delta for line in made.lines):
        notes.append("Discovering groups also has a delta, which every unit is charged equally and is not listed here.")
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]
