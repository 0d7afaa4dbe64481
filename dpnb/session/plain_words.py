"""Facts in plain words: of a question, of a whole session, and what to do first."""

from __future__ import annotations

import math
import textwrap
from html import escape
from typing import TYPE_CHECKING

from dpnb.accounting.doubles import MARGIN
from dpnb.accounting.exact import binary_up, shown_up
from dpnb.accounting.individual import WorstCase
from dpnb.accounting.promise import FILTERS, Promise, shown_bound
from dpnb.answer.faces import STYLE, cost_up, facts_html, floor_percent, notice_html
from dpnb.query.schema import Bounded, Categories
from dpnb.session import individual_words

if TYPE_CHECKING:
    from dpnb.session.session import Session


TEXT_WIDTH = 90
"""Characters of a fact's text in one line of a terminal."""


class Explanation:
    """Facts in words.

    Parameters
    ----------
    words : str
        What they are about.
    facts : list of (str, str)
        Name and text of each.
    notice : str, optional
        Says loudly if the session is not real or not private.
    """

    def __init__(self, words: str, facts: list[tuple[str, str]], notice: str | None = None) -> None:
        self.words = words
        self.facts = facts
        self.notice = notice

    def __repr__(self) -> str:
        width = max((len(name) for name, _ in self.facts), default=0) + 4
        lines = [*([self.notice] if self.notice else []), self.words]
        for name, text in self.facts:
            first, *rest = textwrap.wrap(text, TEXT_WIDTH) or [""]
            lines += [f"{f'  {name}:':<{width}}{first}", *(" " * width + part for part in rest)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        notice, facts = notice_html(self.notice), facts_html(self.facts)
        return f'<div style="{STYLE}">{notice}<b>{escape(self.words)}</b>{facts}</div>'


def of_session(session: Session, spent: str) -> Explanation:
    """The promise, the filter and both readings of the odometers, with the session's numbers.

    Parameters
    ----------
    session : Session
    spent : str
        What is spent and of how much, in the filter's own measure.
    """
    account = session._account
    comparison, promise, filter_ = account.comparison, account.promise, account.filter
    label, source = FILTERS[promise.name]
    facts = [("the promise", promise_words(promise, session.unit_words))]
    kept = (
        f"Spent: {spent}; {floor_percent(filter_.headroom)} is left. It refuses what does not fit, before anything is "
        "read, and a refusal costs nothing."
    )
    if isinstance(filter_, WorstCase):
        kept = f"It is kept {individual_words.keeps(filter_)}. Spent at most: {spent}."
    facts.append(("the filter", f"{label} keeps the promise ({source}). {kept}"))
    takes_part = individual_words.who(account)
    if takes_part is not None:
        facts.append(("who takes part", takes_part))
    said = account.paused
    if said is None:
        said = (
            f"{session.told_of}{account.odometer.statement()} That holds also if you look because of an answer. (The "
            "mixture odometer, chosen when the ledger was made.)"
        )
    facts.append(("so far, looking at any time", said))
    inside = f"{session.told_of}{comparison.accumulator.statement()}"
    facts.append(
        ("so far, against a budget", f"{inside} That says nothing about a moment chosen because of an answer.")
    )
    if comparison.last is not None and takes_part is None:
        times = filter_.times(promise.enters(comparison.last))
        more = f"{times:,} more question{'' if times == 1 else 's'} like the last one"
        facts.append(("what is left", f"{more} ({cost_up(comparison.last)})."))
    facts += [
        (f"{made['kind']} {made['name']}", f"{made['state']}: {made['text']}") for made in session._mechanisms.told()
    ]
    facts.append(
        ("what is free", "Writing questions, previews, asking the same again, arithmetic between answers, and this.")
    )
    return Explanation(f"{session.name}: what is promised, and how it stands", facts, session.notice)


def promise_words(promise: Promise, whose: str) -> str:
    """The guarantee, its figures rounded up.

    Parameters
    ----------
    promise : Promise
    whose : str
        The privacy unit in words.
    """
    budget = promise.budget
    change = f"Whether {whose} is in the table or not"
    if budget.epsilon is None or budget.delta is None:
        mu = shown_up(budget.loss.mu, 6)
        return (
            f"{change} is at least as hard to tell from all answers together as it is to tell one draw of a normal "
            f"distribution with mean 0 from one with mean {mu}, both with standard deviation 1 (mu-Gaussian "
            "differential privacy), however the questions are chosen."
        )
    epsilon, delta = shown_bound(budget.epsilon), shown_bound(budget.delta)
    factor = f"e to the epsilon of {epsilon}"
    if budget.epsilon < 100:  # beyond, the number itself says nothing more
        factor = f"{shown_up(math.exp(binary_up(budget.epsilon)) * MARGIN, 3)} ({factor})"
    return (
        f"{change} changes the probability of anything that all answers together may show by a factor of at most "
        f"{factor}, plus at most {delta} (delta), however the questions are chosen. It is kept as "
        f"{promise.kept}."
    )


def next_steps(session: Session) -> list[dict[str, str]]:
    """What to do first, in words and in code that runs: made of the schema alone."""
    tables = session._tables
    name = next(iter(tables.schemas))
    opened = "session.frame" if not name else f"session.table({name!r})"
    columns = tables.schema(name)
    has_units = tables.units[name].column is not None
    numbers = [column for column, kind in columns.items() if isinstance(kind, Bounded)]
    groups = [column for column, kind in columns.items() if isinstance(kind, Categories)]
    steps = [
        ("Open the table. It is used like pandas, and never shows a row.", f"frame = {opened}"),
        (
            "Ask how many there are. As a cell's last line a question shows what each budget would buy; it is free "
            "until you release it.",
            "frame.units()" if has_units else "frame.count()",
        ),
    ]
    if numbers and groups:
        steps.append(("Compare groups, all in one charge.", f"frame.groupby({groups[0]!r})[{numbers[0]!r}].mean()"))
    elif numbers:
        steps.append(("Ask about a column.", f"frame[{numbers[0]!r}].mean()"))
    steps.append(("Read the promise in plain words.", "session.explain()"))
    return [{"text": text, "code": code} for text, code in steps]
