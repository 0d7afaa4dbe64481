"""A person's own statement as plain text, for that person alone."""

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
"""The column in which the texts of facts begin."""

TIME = len("2000-01-01T00:00:00")

ROUNDING_TOLERANCE = Fraction(1, 10**10)
"""Of the budget; what the rounding of sums leaves over."""

ALONE = "For this person alone: do not show it to the analyst."

EXHAUSTED: dict[OnExhausted, str] = {
    "skip": "Whoever cannot pay is left out of that question, and may take part in a cheaper one.",
    "drop": "Whoever cannot pay is left out of that question and of all that follow.",
    "clip": "Whoever cannot pay counts with as much as is left to pay with.",
}


def statement_text(made: Statement) -> str:
    """The whole statement.

    What analysts wrote, as in the names of groups, is shown without the characters that move a terminal's cursor.
    """
    loud = [] if made.metadata.notice is None else [f"!!! {made.metadata.notice} !!!", ""]
    title = [f"Statement for {made.who}", ALONE, ""]
    facts = facts_text([(name, printable(text)) for name, text in _facts(made)], BEGIN, WIDTH - BEGIN)
    lines = [*loud, *title, *facts, "", *_table(made), "", *_notes(made), *([""] if loud else []), *loud[:1]]
    return "\n".join(map(printable, lines))


def _facts(made: Statement) -> list[tuple[str, str]]:
    promise, whose = made.account.promise, made.metadata.tables.words
    asked = {line.version for line in made.lines}
    never = "" if made.version in asked or not asked else ", of which the ledger has no question"
    return [
        ("session", f"{made.metadata.name}; {len(made.lines)} rows in the ledger {made.ledger}"),
        ("table", f"version {made.version!r}{never}"),
        ("promise", describe_guarantee(promise, whose)),
        (
            "accounting",
            "Each has the whole budget for themselves and is charged for what a question could tell of them alone. "
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
            f"{name} {display_up(spent)}, more than the budget of {display_down(budget)}: {share}. Questions of other "
            "versions of the table are counted at their worst here, since nobody knows this person's rows there."
        )
    if made.budget - made.spent <= ROUNDING_TOLERANCE * made.budget:
        return f"{name} {display_up(spent)}, all of it"
    return f"{of_budget(name, spent, budget)}: {share}"


def _left(made: Statement) -> str:
    if made.excluded_since is not None:
        return f"nothing that can be used: out for good since question {made.excluded_since}"
    if made.left <= ROUNDING_TOLERANCE * made.budget:
        return "nothing"
    name, left = _amount(made, made.left, up=False)
    return f"{name} {display_down(left)}: {format_percent_down(decimal_down(made.left / made.budget))} of the budget"


def _amount(made: Statement, mu_squared: Fraction, *, up: bool) -> tuple[str, float]:
    """A sum in the measure of the filter, with its name."""
    if made.account.promise.filter_name == "zcdp":
        return "rho", (decimal_up if up else decimal_down)(mu_squared / 2)
    return "mu", (decimal_sqrt_up if up else decimal_sqrt_down)(mu_squared)


def _table(made: Statement) -> list[str]:
    if not made.lines:
        return ["Nothing has been asked yet."]
    head = ("no.", "time (UTC)", "in full", "charged", "share", "this person", "question")
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
        "in part": "counted in part, with all that was left",
        "left out": "left out: not enough left",
        "untouched": "not touched",
        "worst case": f"charged the worst case of version {line.version!r}",
        "free": "free for everybody",
    }[line.took]
    if line.took == "left out" and made.excluded_since not in (None, line.id):
        words = f"left out since question {made.excluded_since}"
    return words if line.answered else f"{words}; never answered"


def _notes(made: Statement) -> list[str]:
    notes = [
        "In full: what taking part in full would have cost this person; charged: what it did cost. Both are a mu, "
        "rounded up; squares of mu add up, and so do the shares of the budget.",
        "Right if the file is the table that the session was given, with values of the same types.",
    ]
    if any(line.delta for line in made.lines):
        notes.append("Looking for groups also has a delta, which is charged to everybody alike and is not listed here.")
    return [line for note in notes for line in textwrap.wrap(note, WIDTH)]
