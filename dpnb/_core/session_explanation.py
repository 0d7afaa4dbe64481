"""Explanations in words: the guarantee, the budget and the units of a session, and the first steps.

Which units take part under individual accounting is a function of the ledger alone.  Public are the worst case, a unit
that every query affects in full, and what it implies for all units.  Which units are excluded, how many, and whether
there are any, is private.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.core import SessionCore
from dpnb._core.history.words import cost_text
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import MARGIN, binary_up, decimal_up, display_up, exact
from dpnb.accounting.guarantee import PrivacyGuarantee, display_bound
from dpnb.errors import printable
from dpnb.render.numbers import format_percent_down, format_percent_up
from dpnb.results.display import Explanation
from dpnb.schema import Bounded, Categories

WORST_CASE = "Worst case"
"""Label of the filter's gauge."""

LIVE = ("PostgreSQL",)
"""Engines that read a table where it may be written; a file that has changed is refused."""

NOTHING_REFUSED = (
    "There is none: no query is refused for its cost, and every charge is recorded ({}). Odometers report the privacy "
    'loss (Rogers et al. 2016, Section 6, "pay as you go").'
)

TWO_AMOUNTS = (
    " It is more than what is spent of this budget: a mechanism in pure DP is charged what it takes from the budget "
    "that is left, and would take more from a smaller one, so here it is counted as under any budget."
)
"""Why a budget that covers the history is larger than the sum of what was charged."""


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


def of_session(core: SessionCore, spent: str, mechanisms: list[dict[str, Any]]) -> Explanation:
    """The guarantee, the filter and both odometer readings, with the session's numbers.

    `spent` is the loss spent and the budget, in the filter's own measure; `mechanisms` are as the panel shows them.
    """
    account = core.account
    guarantee, filter_, last_loss = account.guarantee, account.filter, account.last_loss
    facts = [
        ("the guarantee", describe_guarantee(guarantee, core.tables.words)),
        ("the filter", _enforcement(account, spent) if guarantee.has_budget else NOTHING_REFUSED.format(spent)),
    ]
    facts.append(("the table", describe_engine(core.tables.engine)))
    takes_part = participation_description(account)
    if takes_part is not None:
        facts.append(("participation", takes_part))
    reading = account.paused
    if reading is None:
        reading = (
            f"{core.statement_prefix}{account.odometer.statement()} This also holds at a moment chosen because of an "
            "answer. (The mixture odometer, chosen when the ledger was created.)"
        )
    facts.append(("so far, at any moment", reading))
    inside = f"{core.statement_prefix}{account.accumulator.statement()}"
    inside += " This does not apply to a moment chosen because of an answer."
    covered, charged = (
        account.compared(everything=False).accumulator.spent.noise_mu_squared,
        filter_.spent.noise_mu_squared,
    )
    if guarantee.has_budget and covered is not None and charged is not None and covered > charged:
        inside += TWO_AMOUNTS
    inside += ' (The accumulator in the filter\'s kind of loss; session.odometers has it as "spent", and the others.)'
    facts.append(("so far, against a budget", inside))
    if last_loss is not None and takes_part is None and guarantee.has_budget:
        times = filter_.max_repetitions(guarantee.to_filter_loss(last_loss)) or 0
        more = f"{times:,} more quer{'y' if times == 1 else 'ies'} like the last one"
        facts.append(("what is left", f"{more}, each {cost_text(account, last_loss)}."))
    facts += [(f"{one['kind']} {one['name']}", f"{one['state']}: {one['text']}") for one in mechanisms]
    facts.append(
        ("what is free", "Writing and previewing queries, repeating a request, arithmetic with answers, and explain().")
    )
    return Explanation(f"{core.name}: guarantee and budget", facts, core.notice)


def describe_engine(engine: str) -> str:
    """Where the rows are, and what computes the answers."""
    if engine == "memory":
        return "Its declared columns were copied into memory, where all queries are computed."
    live = " Each answer is about the rows at its time; the table may change." if engine in LIVE else ""
    where = f"Its rows are in {printable(engine)}, which computes the sums of each query; dpnb adds the noise to them."
    return f"{where}{live}"


def _enforcement(account: Accountant, spent: str) -> str:
    """What the filter enforces, and how much of the budget is spent."""
    filter_ = account.filter
    spent_fraction = format_percent_up(decimal_up(1 - exact(filter_.headroom)))
    enforcement = (
        f"Spent: {spent_fraction} of the budget ({spent}); {format_percent_down(filter_.headroom)} is left. It refuses "
        "any query that exceeds the budget, before any row is read, and a refusal costs nothing."
    )
    if filter_.is_individual:
        enforcement = (
            f"It does so for each unit separately; {format_percent_down(filter_.headroom)} is left for a unit that "
            "every query affects in full. It refuses nothing: a unit that cannot pay for a query is excluded from it, "
            f"before anything is released. Spent at most: {spent}."
        )
    return f"{filter_.label} enforces the guarantee ({filter_.theorem}). {enforcement}"


def describe_guarantee(guarantee: PrivacyGuarantee, unit: str) -> str:
    """The guarantee in words, with its numbers rounded up; `unit` is the privacy unit in words."""
    budget = guarantee.budget.limit
    if budget is None:
        return (
            "None in advance: the curator declared no budget, so nothing limits what all answers together may show "
            f"about {unit}. What they have shown so far is bounded below."
        )
    change = f"Whether {unit} is in the table or not"
    if budget.is_pure:
        return (
            f"{change} changes the probability of anything that all answers together may show by a factor of at most "
            f"{_factor(budget.pure_epsilon)}, however the queries are chosen."
        )
    if budget.epsilon is None or budget.delta is None:
        mu = display_up(budget.loss.mu, 6)
        return (
            f"{change} is at least as hard to infer from all answers together as it is to distinguish one draw of a "
            f"normal distribution with mean 0 from one with mean {mu}, both with standard deviation 1 (mu-Gaussian "
            f"differential privacy){_beside(budget)}, however the queries are chosen."
        )
    return (
        f"{change} changes the probability of anything that all answers together may show by a factor of at most "
        f"{_factor(budget.epsilon)}, plus at most {display_bound(budget.delta)} (delta), however the queries are "
        f"chosen. It is enforced as {guarantee.filter_guarantee}."
    )


def _beside(budget: Budget) -> str:
    """What a budget in GDP allows beside its mu, in words."""
    reserve = f", beside a factor of at most {_factor(budget.pure_epsilon)}" if budget.pure_epsilon else ""
    discovery = f", and but for at most {display_bound(budget.discovery_delta)}" if budget.discovery_delta else ""
    return reserve + discovery


def _factor(epsilon: Fraction) -> str:
    """The number e to the power of epsilon, rounded up, in words."""
    factor = f"e to the epsilon of {display_bound(epsilon)}"
    if epsilon >= 100:  # the factor itself is not informative
        return factor
    return f"{display_up(math.exp(binary_up(epsilon)) * MARGIN, 3)} ({factor})"


def next_steps(core: SessionCore) -> list[dict[str, str]]:
    """The first steps, in words and in code that runs, derived from the schema alone."""
    tables = core.tables
    name = next(iter(tables.schemas))
    opened = "session.frame" if not name else f"session.table({name!r})"
    columns = tables.schema(name)
    unit = tables.units[name].column
    has_units, one = unit is not None, "row" if unit is None else unit
    numbers = [column for column, kind in columns.items() if isinstance(kind, Bounded)]
    groups = [column for column, kind in columns.items() if isinstance(kind, Categories)]
    count = "df.count_units()" if has_units else "df.count()"
    in_pure_dp = core.account.budget.is_pure
    steps = [
        (
            "Open the table. It is used like a pandas DataFrame, and never shows a row: the noise of every answer "
            f"hides whether any one {one} is in it.",
            f"df = {opened}",
        ),
    ]
    if not in_pure_dp:
        shown = "As the last line of a cell, a query shows the expected error for several budgets; it is free until "
        what = f"privacy units: each {unit}, with all its rows, is one" if has_units else "rows"
        steps.append((f"Count the {what}. {shown}you release it.", count))
    if in_pure_dp:
        launch = "session.above_threshold(100, name='scan', epsilon=0.01, dry_run=True)"
        steps.append(("See what a search for large counts costs; the budget is in pure DP, for such scans.", launch))
        if groups:
            counted = count.replace("df", f"df.groupby({groups[0]!r})")
            steps.append(("Find the largest group; this is free until you release it.", f"{counted}.idxmax()"))
    elif numbers and groups:
        steps.append(("Compare groups, all in one charge.", f"df.groupby({groups[0]!r})[{numbers[0]!r}].mean()"))
    elif numbers:
        steps.append(("Query a column.", f"df[{numbers[0]!r}].mean()"))
    steps.append(("Read in words what is guaranteed.", "session.explain()"))
    return [{"text": text, "code": code} for text, code in steps]
