"""What several ledgers about the same units guarantee together: ``python -m dpnb report A B``.

No ledger shows that the units of another one are the same: the curator says so.  Nor does a sum have any meaning if one
ledger is given twice, as a copy, a backup or an earlier state; the first row of a chain tells, since what is in it is
the same in all of them and in no other ledger.

Theorem and proof are in :mod:`dpnb.accounting.filters.several`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from textwrap import fill

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import LEDGER_RESTORED
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb.accounting.exact import decimal_up, display_up, exact
from dpnb.accounting.filters.several import Guaranteed, Together, guaranteed_together
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import Ledger
from dpnb.ledger.chain import ChainHead, chain_start
from dpnb.ledger.charge import ACT, REQUESTS, VERSION
from dpnb.results.disclosure.parts import Stated, Written
from dpnb.session.disclosure.building import written_now
from dpnb.session.disclosure.figures import NEIGHBOURS, factor_of

SAME_UNIT, SET_BEFOREHAND = "--same-unit", "--set-beforehand"
"""What only the curator can say: the options of the command line."""

RULES = {
    "GDP": "The sum of mu^2, of the deltas for discovered groups and of the reserves in pure DP (Smith and Thakurta "
    "2022; Dong, Roth and Su 2022, Corollary 3.3; Vadhan and Zhang 2023)",
    "pure DP": "The sum of the epsilons (Vadhan and Zhang 2023)",
    "zCDP": "The sum of rho and of the deltas for discovered groups (Whitehouse et al. 2023, Theorem 1, for the "
    "steps of all ledgers as one sequence)",
    "RDP": "The sum of the Renyi losses of one order, and of the deltas for discovered groups (Feldman and Zrnic 2021, "
    "Theorem 4.3, for the steps of all ledgers as one sequence)",
    "basic": "The sum of the epsilons and of the deltas of what each ledger guarantees (basic composition: Rogers et "
    "al. 2016, Theorem 3.3; Vadhan and Zhang 2023)",
}
"""By which theorem guarantees are added, by the label of the filter of the sum."""

WIDTH = 100


@dataclass(frozen=True)
class AddedLedger:
    """One of the ledgers."""

    path: str
    name: str  # of the session
    stated: Stated | None  # in the curator's own words
    short: str  # the guarantee in few words
    spent: str  # what was charged, in words
    guaranteed: Guaranteed
    units: frozenset[str | None]  # columns that name the unit of a row; None if each row is a unit
    last: ChainHead
    start: str  # hash before the first row
    first: str | None  # that of the first row
    began: str | None  # time of the first row, also in a redacted copy
    is_redacted: bool
    set_at: str | None  # time of the first row with this budget
    answered_at: str | None  # time of the first request
    may_lack: bool  # whether it was accepted as a ledger that may be an older copy


@dataclass(frozen=True)
class LedgerSum:
    """The sum of the guarantees; `late` has the ledgers whose budget may have been set after answers of another one."""

    ledgers: tuple[AddedLedger, ...]
    total: Together
    late: tuple[tuple[AddedLedger, AddedLedger], ...]
    is_said: bool  # whether the curator says that all budgets were set beforehand
    written: Written


def sum_of(paths: Sequence[str], *, same_unit: bool, set_beforehand: bool = False) -> LedgerSum:
    """Add the guarantees of several ledgers, which are only read.

    `same_unit` is the curator's word that their units are the same, and `set_beforehand` that all budgets were set
    before any of them gave an answer.
    """
    ledgers = tuple(map(_read, paths))
    for one, other in combinations(ledgers, 2):
        _refuse_same(one, other)
    _refuse_other_units(ledgers, same_unit=same_unit)
    late = tuple((one, other) for one in ledgers for other in ledgers if one is not other and _is_late(one, other))
    total = guaranteed_together([one.guaranteed for one in ledgers])
    return LedgerSum(ledgers, total, late, set_beforehand, written_now())


def write_sum(paths: Sequence[str], output: str | None, *, same_unit: bool, set_beforehand: bool) -> tuple[str, int]:
    """The command: what it prints, and its exit status."""
    text = sum_text(sum_of(paths, same_unit=same_unit, set_beforehand=set_beforehand))
    if output is None:
        return text, 0
    try:
        Path(output).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    except OSError as error:
        raise InvalidValueError(f"--output: must be a file that can be written; got {output!r} ({error})") from None
    return f"{output}: {len(paths)} ledgers", 0


# --- reading ----------------------------------------------------------------------------------------------------------


def _read(path: str) -> AddedLedger:
    with closing(Ledger.read_only_copy(path)) as ledger:
        metadata, account = LedgerMetadata.from_dict(ledger.metadata, path), Accountant.from_ledger(ledger)
        guarantee, budget = account.guarantee, account.guarantee.budget
        if metadata.notice is not None or not budget.is_limited:
            fault = metadata.notice or "it has no budget, so that nothing was promised beforehand"
            raise InvalidValueError(
                f"ledger {path!r}: must have a guarantee that can be added; {fault}; leave it out, and give its own "
                "statement beside this one"
            )
        delta = Fraction(0) if budget.is_pure else account.delta if budget.delta is None else budget.delta
        own = guarantee.initial_filter.guaranteed_epsilon(delta)
        epsilon = exact(own) if budget.epsilon is None else min(budget.epsilon, exact(own))
        rows, times = ledger.summaries(), ledger.times()
        first = ledger.stored([1], ("hash",)) if rows else []
        asked = next((one.id for one in rows if one.kind in REQUESTS), None)
        return AddedLedger(
            path=path,
            name=metadata.name,
            stated=metadata.stated,
            short=guarantee.words,
            spent=account.sync().filter.spent_words,
            guaranteed=Guaranteed(guarantee.filter_name, guarantee.initial_filter, epsilon, delta),
            units=frozenset(unit.column for unit in metadata.tables.units.values()),
            last=ledger.last,
            start=chain_start(path, *ledger.created).hash,
            first=str(first[0]["hash"]) if first else None,
            began=times.get(1),
            is_redacted=ledger.is_redacted,
            set_at=times.get(_row_of_budget(ledger)),
            answered_at=None if asked is None else times[asked],
            may_lack=any(one.kind == ACT and (one.launch or {}).get("act") == LEDGER_RESTORED for one in rows),
        )


def _row_of_budget(ledger: Ledger) -> int:
    """The first row that was written when the budget was what it is now."""
    number, before = 1, _budget_in(ledger.created.metadata)
    for one in ledger.summaries():
        if one.kind == VERSION and (now := _budget_in((one.launch or {})["metadata"])) != before:
            number, before = one.id, now
    return number


def _budget_in(metadata: object) -> tuple[object, ...]:
    return (
        tuple(metadata.get(name) for name in ("budget", "filter", "on_exhausted")) if isinstance(metadata, dict) else ()
    )


def _is_late(one: AddedLedger, other: AddedLedger) -> bool:
    """Whether a ledger has no row with its budget from before the first request to another one.

    Without any row nothing shows when it was set; without a request, nothing was seen of the other one.
    """
    return other.answered_at is not None and (one.set_at is None or one.set_at >= other.answered_at)


# --- refusals ---------------------------------------------------------------------------------------------------------


def _refuse_same(one: AddedLedger, other: AddedLedger) -> None:
    has_none = None in (one.first, other.first)
    is_redacted = one.is_redacted != other.is_redacted and one.began == other.began  # whose rows have other hashes
    if one.start != other.start or not (one.first == other.first or has_none or is_redacted):
        return
    last = max(one, other, key=lambda ledger: ledger.last.number)
    begin = "have the same declaration, and one has no row by which they differ" if has_none else "begin with one row"
    raise InvalidValueError(
        f"ledger {other.path!r}: must be another ledger than {one.path!r}; both {begin}, so that one is a copy, a "
        f"backup or an earlier state of the other; give it once: {last.path!r} has the most rows. If both were charged "
        "after they had been copied, what each of them released counts, and no sum of their budgets says how much that "
        "is: stop using one, and count its later rows as spent"
    )


def _refuse_other_units(ledgers: Sequence[AddedLedger], *, same_unit: bool) -> None:
    words = "; ".join(f"{one.path!r}: {_unit_words(one)}" for one in ledgers)
    if len({one.units for one in ledgers}) > 1:
        raise InvalidValueError(
            f"ledgers: must be about the same unit, named by the same column, to be added; got {words}; state the "
            "guarantee of each of them alone"
        )
    if not same_unit:
        raise InvalidValueError(
            f"ledgers: are added only if their units are the same, which no ledger shows; got {words}; if a value "
            f"there names the same unit in all of them, say so with {SAME_UNIT}; otherwise state each of them alone"
        )


def _unit_words(one: AddedLedger) -> str:
    return " and ".join("each row" if name is None else f"column {name!r}" for name in sorted(one.units, key=str))


# --- the report in words ----------------------------------------------------------------------------------------------


def sum_text(found: LedgerSum) -> str:
    """The report."""
    written, n = found.written, len(found.ledgers)
    parts = [f"What {n} ledgers guarantee together", f"Written {written.time} by {written.program} {written.version}."]
    sections = {
        "The ledgers": [line for one in found.ledgers for line in _ledger_lines(one)],
        "Who is protected": list(_protected(found)),
        "What is guaranteed together": list(_guaranteed(found)),
        "When the budgets were set": list(_set(found)),
        "What is not covered": list(_not_covered(found)),
    }
    parts += [
        f"{title}\n{'-' * len(title)}\n\n" + "\n\n".join(map(_filled, lines)) for title, lines in sections.items()
    ]
    return "\n\n".join(parts)


def _filled(text: str) -> str:
    return fill(printable(text), WIDTH, break_long_words=False, break_on_hyphens=False)


def _ledger_lines(one: AddedLedger) -> Iterator[str]:
    rows = f"{one.last.number:,} row{'s' if one.last.number != 1 else ''}"
    asked = "nothing was requested" if one.answered_at is None else f"first request {one.answered_at}"
    title = "" if one.stated is None or one.stated.text.title is None else f"{one.stated.text.title}: "
    yield (
        f"{title}{one.name} ({one.path}): {one.short}. Charged so far: {one.spent}. {rows}, {asked}; the hash of the "
        f"last row is {one.last.hash}."
    )


def _protected(found: LedgerSum) -> Iterator[str]:
    labels = {one.stated.unit_label for one in found.ledgers if one.stated is not None} - {None}
    label = f" (one {labels.pop()})" if len(labels) == 1 else ""
    yield (
        f"One unit{label}, which is named by {_unit_words(found.ledgers[0])}, with all its rows in the tables of all "
        f"ledgers. The curator says that the same value names the same unit in all of them ({SAME_UNIT}); no ledger "
        "can show that."
    )
    yield NEIGHBOURS


def _guaranteed(found: LedgerSum) -> Iterator[str]:
    total = found.total
    filter_, epsilon, delta = total.filter, display_up(total.epsilon), display_up(decimal_up(total.delta))
    own = "" if filter_.label == "basic" else f"{filter_.guarantee}{_bad_part(total)}, which implies "
    factor = factor_of(exact(total.epsilon))
    words = f", a factor of {display_up(factor)}" if factor is not None else ""
    if found.late and not found.is_said:
        yield "This is a reading, and not a promise that was made beforehand, as the next section says."
    yield (
        f"All answers of these ledgers together, those that were given and those that their budgets still admit: {own}"
        f"({epsilon}, {delta})-DP. So the probability of any outcome changes by a factor of at most e to the {epsilon}"
        f"{words}, plus at most {delta}, whether or not a unit is in the tables."
    )
    yield (
        f"The rule: {RULES[filter_.label]}. Delta is the sum of the deltas of the ledgers. Sums are exact, and what is "
        "shown is rounded up. It holds whatever each request was chosen by, also by answers of the other ledgers."
    )


def _bad_part(total: Together) -> str:
    delta = None if total.filter.budget is None else total.filter.budget.delta
    return f" but for a delta of {display_up(decimal_up(delta))}" if delta else ""


def _set(found: LedgerSum) -> Iterator[str]:
    clocks = "The times are those of the rows, as the clocks of the machines had them."
    if not found.late:
        yield (
            "No ledger had a request before the budget of each other one was in a row. So the sum is a promise "
            "that was made beforehand, as long as no budget was chosen, or kept, because of what another ledger had "
            f"answered. {clocks}"
        )
        return
    for one, other in found.late:
        when = "has no row that shows when it was set" if one.set_at is None else f"is in a row since {one.set_at}"
        yield f"The budget of {one.path} {when}; the first request to {other.path} was at {other.answered_at}."
    if found.is_said:
        yield (
            "The curator says that it was set before that, and all budgets before the first answer "
            f"({SET_BEFOREHAND}). On that word the sum is a promise that was made beforehand; no row shows it. {clocks}"
        )
        return
    yield (
        "So answers of one ledger may have been seen when the budget of another was set. The sum is then the reading "
        "of an accumulator, and not a promise that was made beforehand: all answers are inside every guarantee of this "
        "kind that was fixed beforehand and is at least as large (Haney et al. 2023). It does not hold as a promise "
        f"for a sum that was chosen because of answers. {clocks} If the budgets were set beforehand nevertheless, the "
        f"curator can say so with {SET_BEFOREHAND}."
    )


def _not_covered(found: LedgerSum) -> Iterator[str]:
    lacking = [one.path for one in found.ledgers if one.may_lack]
    if lacking:
        yield (
            f"Charges that a ledger lacks: {', '.join(lacking)} was accepted as one that may be an older copy. What "
            "was released after that copy was made adds to the sum."
        )
    yield (
        "Further ledgers and other releases about the same units, which add to this. What the statement of each ledger "
        "says is not covered; it has the releases, bounds and assumptions: python -m dpnb report LEDGER"
    )
    yield (
        "To check this report, make it again from the same ledgers: the hashes above depend on every row. Later rows "
        "change nothing but what was charged."
    )
