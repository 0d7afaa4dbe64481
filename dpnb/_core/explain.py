"""Facts in plain words: of a question, of a whole session, and what to do first."""

from __future__ import annotations

import math
from typing import Any

from dpnb._core.accountant import participation
from dpnb._core.core import SessionCore
from dpnb._plan.schema import Bounded, Categories
from dpnb.accounting.doubles import MARGIN
from dpnb.accounting.exact import binary_up, display_up
from dpnb.accounting.guarantee import FILTERS, PrivacyGuarantee, display_bound
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.render.numbers import format_cost_up, format_percent_down
from dpnb.results.explanation import Explanation


def of_session(core: SessionCore, spent: str, mechanisms: list[dict[str, Any]]) -> Explanation:
    """The promise, the filter and both readings of the odometers, with the session's numbers.

    Parameters
    ----------
    core : SessionCore
    spent : str
        What is spent and of how much, in the filter's own measure.
    mechanisms : list of dict
        What the panel is told of those that were launched in it.
    """
    account = core.account
    comparison, promise, filter_ = account.comparison, account.promise, account.filter
    label, source = FILTERS[promise.filter_name]
    facts = [("the promise", describe_guarantee(promise, core.tables.words))]
    kept = (
        f"Spent: {spent}; {format_percent_down(filter_.headroom)} is left. It refuses what does not fit, before "
        "anything is read, and a refusal costs nothing."
    )
    if isinstance(filter_, WorstCaseFilter):
        kept = f"It is kept {participation.filter_description(filter_)}. Spent at most: {spent}."
    facts.append(("the filter", f"{label} keeps the promise ({source}). {kept}"))
    takes_part = participation.participation_description(account)
    if takes_part is not None:
        facts.append(("who takes part", takes_part))
    said = account.paused
    if said is None:
        said = (
            f"{core.statement_prefix}{account.odometer.statement()} That holds also if you look because of an answer. "
            "(The mixture odometer, chosen when the ledger was made.)"
        )
    facts.append(("so far, looking at any time", said))
    inside = f"{core.statement_prefix}{comparison.accumulator.statement()}"
    facts.append(
        ("so far, against a budget", f"{inside} That says nothing about a moment chosen because of an answer.")
    )
    if comparison.last is not None and takes_part is None:
        times = filter_.max_repetitions(promise.to_filter_loss(comparison.last))
        more = f"{times:,} more question{'' if times == 1 else 's'} like the last one"
        facts.append(("what is left", f"{more} ({format_cost_up(comparison.last)})."))
    facts += [(f"{made['kind']} {made['name']}", f"{made['state']}: {made['text']}") for made in mechanisms]
    facts.append(
        ("what is free", "Writing questions, previews, asking the same again, arithmetic between answers, and this.")
    )
    return Explanation(f"{core.name}: what is promised, and how it stands", facts, core.notice)


def describe_guarantee(promise: PrivacyGuarantee, whose: str) -> str:
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
        mu = display_up(budget.loss.mu, 6)
        return (
            f"{change} is at least as hard to tell from all answers together as it is to tell one draw of a normal "
            f"distribution with mean 0 from one with mean {mu}, both with standard deviation 1 (mu-Gaussian "
            "differential privacy), however the questions are chosen."
        )
    epsilon, delta = display_bound(budget.epsilon), display_bound(budget.delta)
    factor = f"e to the epsilon of {epsilon}"
    if budget.epsilon < 100:  # beyond, the number itself says nothing more
        factor = f"{display_up(math.exp(binary_up(budget.epsilon)) * MARGIN, 3)} ({factor})"
    return (
        f"{change} changes the probability of anything that all answers together may show by a factor of at most "
        f"{factor}, plus at most {delta} (delta), however the questions are chosen. It is kept as "
        f"{promise.filter_guarantee}."
    )


def next_steps(core: SessionCore) -> list[dict[str, str]]:
    """What to do first, in words and in code that runs: made of the schema alone."""
    tables = core.tables
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
            "frame.count_units()" if has_units else "frame.count()",
        ),
    ]
    if numbers and groups:
        steps.append(("Compare groups, all in one charge.", f"frame.groupby({groups[0]!r})[{numbers[0]!r}].mean()"))
    elif numbers:
        steps.append(("Ask about a column.", f"frame[{numbers[0]!r}].mean()"))
    steps.append(("Read the promise in plain words.", "session.explain()"))
    return [{"text": text, "code": code} for text, code in steps]
