"""Which units take part, in words, under individual accounting: a function of the ledger alone.

Public are the worst case, a unit that every query affects in full, and what it implies for all units.  Which units are
excluded, how many, and whether there are any, is private.
"""

from __future__ import annotations

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.filters import Filter
from dpnb.render.numbers import format_percent_down

WORST_CASE = "Worst case"
"""Label of the filter's gauge."""


def participation_description(account: Accountant) -> str | None:
    """Which units take part in past and further queries; None under worst-case accounting."""
    filter_, last = account.root.filter, account.root.last_loss
    if not filter_.is_individual:
        return None
    each = "Each unit pays only for the queries that use its data, and what it has paid is private."
    first = account.first_exclusion
    if first is not None:
        until = f"up to request {first - 1}" if first > 1 else "in no request"
        return (
            f"Every unit certainly took part {until}. Since then, units that cannot pay for a query may be excluded "
            f"from it; which, how many, and whether there are any is private. Queries can continue: answers are about "
            f"the units that take part. {each}"
        )
    if last is None:
        return f"Every unit certainly takes part in all queries that the worst case still covers. {each}"
    times = filter_.max_repetitions(account.guarantee.to_filter_loss(last))
    more = "no further query" if not times else f"{times:,} more quer{'ies' if times != 1 else 'y'}"
    return (
        f"Every unit certainly took part so far, and takes part in {more} like the last one. After that, units that "
        f"cannot pay for a query may be excluded from it; which and how many is private. {each}"
    )


def remaining_description(account: Accountant) -> str | None:
    """The remaining budget, for the gauge; None under worst-case accounting."""
    if not account.individual:
        return None
    if account.first_exclusion is not None:
        return "some units may be excluded"
    return f"{format_percent_down(account.filter.headroom)} left for every unit"


def filter_description(filter_: Filter) -> str:
    """What the filter does, for `explain`."""
    return (
        f"for each unit separately; {format_percent_down(filter_.headroom)} is left for a unit that every query "
        "affects in full. It refuses nothing: a unit that cannot pay for a query is excluded from it, before anything "
        "is released"
    )
