"""Who takes part, in words, where each unit has a budget of its own: made of the ledger alone.

What may be said is how things stand for the unit that every question touches in full, and what follows from it for
everybody.  Who is left out, how many, and whether anybody is, is nobody's to know.
"""

from __future__ import annotations

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.render.numbers import format_percent_down

WORST_CASE = "Worst case"
"""What the gauge of the filter is called."""


def participation_description(account: Accountant) -> str | None:
    """Who takes part so far and in further questions; None where all are accounted for alike."""
    whole, last = account.root.filter, account.root.comparison.last
    if not isinstance(whole, WorstCaseFilter):
        return None
    each = "Each pays only for the questions that touch them, and what anybody has paid is private."
    first = account.first_exclusion
    if first is not None:
        until = f"up to request {first - 1}" if first > 1 else "in no request"
        return (
            f"Everybody surely took part {until}. Since then some may be left out of what they cannot pay for; who, "
            f"how many, and whether anybody is, is private. Questions go on: answers are about those who take part. "
            f"{each}"
        )
    if last is None:
        return f"Everybody surely takes part in whatever the worst case still covers. {each}"
    times = whole.max_repetitions(account.promise.to_filter_loss(last))
    more = "no further question" if not times else f"{times:,} more question{'s' if times != 1 else ''}"
    return (
        f"Everybody surely took part so far, and takes part in {more} like the last one. After that some may be left "
        f"out of what they cannot pay for, and nobody is told who or how many. {each}"
    )


def remaining_description(account: Accountant) -> str | None:
    """What is left, for the gauge; None where all are accounted for alike."""
    if not account.individual:
        return None
    if account.first_exclusion is not None:
        return "some may be left out"
    return f"{format_percent_down(account.filter.headroom)} left for everybody"


def filter_description(filter_: WorstCaseFilter) -> str:  # type: ignore[type-arg]
    """What the filter does, for `explain`."""
    return (
        f"for each unit by itself; {format_percent_down(filter_.headroom)} is left for a unit that every question "
        "touches in full. It refuses nothing: a unit that cannot pay for a question is left out of it, before anything "
        "is released"
    )
