"""A person's own statement as plain text, for that person alone."""

from __future__ import annotations

import textwrap
from fractions import Fraction

from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_sqrt_up, decimal_up, shown_down, shown_up
from dpnb.accounting.individual import OnExhausted
from dpnb.answer.faces import ceil_percent, floor_percent
from dpnb.errors import printable
from dpnb.session.plain_words import promise_words
from dpnb.session.state import of_budget
from dpnb.session.statement import Line, Statement

WIDTH = 100
TIME = len("2000-01-01T00:00:00")

CRUMB = Fraction(1, 10**10)
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
    loud = [] if made.pledge.notice is None else [f"!!! {made.pledge.notice} !!!", ""]
    title = [f"Statement for {made.who}", ALONE, ""]
    facts = [line for name, text in _facts(made) for line in _fact(name, text)]
    lines = [*loud, *title, *facts, "", *_table(made), "", *_notes(made), *([""] if loud else []), *loud[:1]]
    return "\n".join(map(printable, lines))


def _facts(made: Statement) -> list[tuple[str, str]]:
    promise, whose = made.account.promise, made.pledge.tables.words
    asked = {line.version for line in made.lines}
    never = "" if made.version in asked or not asked else ", of which the ledger has no question"
    return [
        ("session", f"{made.pledge.name}; {len(made.lines)} rows in the ledger {made.ledger}"),
        ("table", f"version {made.version!r}{never}"),
        ("promise", promise_words(promise, whose)),
        (
            "accounting",
            "Each has the whole budget for themselves and is charged for what a question could tell of them alone. "
            + EXHAUSTED[made.on_exhausted],
        ),
        ("spent", _spent(made)),
        ("left", _left(made)),
    ]


def _spent(made: Statement) -> str:
    share = f"{ceil_percent(decimal_up(made.spent / made.budget))} of the budget"
    name, spent = _amount(made, made.spent, up=True)
    _, budget = _amount(made, made.budget, up=False)
    if made.spent > made.budget:
        return (
            f"{name} {shown_up(spent)}, more than the budget of {shown_down(budget)}: {share}. Questions of other "
            "versions of the table are counted at their worst here, since nobody knows this person's rows there."
        )
    if made.budget - made.spent <= CRUMB * made.budget:
        return f"{name} {shown_down(budget)}, all of it"
    return f"{of_budget(name, spent, budget)}: {share}"


def _left(made: Statement) -> str:
    if made.out_since is not None:
        return f"nothing that can be used: out for good since question {made.out_since}"
    if made.left <= CRUMB * made.budget:
        return "nothing"
    name, left = _amount(made, made.left, up=False)
    return f"{name} {shown_down(left)}: {floor_percent(decimal_down(made.left / made.budget))} of the budget"


def _amount(made: Statement, mu_squared: Fraction, *, up: bool) -> tuple[str, float]:
    """A sum in the measure of the filter, with its name."""
    if made.account.promise.name == "zcdp":
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
            ceil_percent(decimal_up(line.paid / made.budget)),
            _became(line, made),
            printable(line.question),
        )
        for line in made.lines
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    right = (0, 2, 3, 4)
    return [
        "  ".join(
            text.rjust(width) if place in right else text.ljust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def _mu(mu_squared: Fraction) -> str:
    return shown_up(decimal_sqrt_up(mu_squared)) if mu_squared else "0"


def _became(line: Line, made: Statement) -> str:
    """How the person took part, in words."""
    words = {
        "in full": "took part",
        "in part": "counted in part, with all that was left",
        "left out": "left out: not enough left",
        "untouched": "not touched",
        "worst case": f"charged the worst case of version {line.version!r}",
        "free": "free for everybody",
    }[line.took]
    if line.took == "left out" and made.out_since not in (None, line.id):
        words = f"left out since question {made.out_since}"
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


def _fact(name: str, text: str) -> list[str]:
    first, *rest = textwrap.wrap(printable(text), WIDTH - 14, break_long_words=False)
    return [f"{name + ':':<14}{first}", *(" " * 14 + part for part in rest)]
