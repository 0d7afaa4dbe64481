"""Releases of the ledger in words, many at once: queries that differ only in which rows count are read together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import numpy as np

from dpnb._core.pricing.estimation import EstimateReader
from dpnb._core.pricing.target import StoredRequest
from dpnb._plan.measurements import BoundsView, Discovery, Proportions
from dpnb._plan.plan import Plan, describe_filter, describe_unfiltered, split_filter
from dpnb.errors import DpnbError, printable
from dpnb.ledger.charge import StoredRelease
from dpnb.ledger.queries import MAX_STORED
from dpnb.results.observations import CombinedObservations
from dpnb.results.stacked import StackedObservations

MAX_NUMBERS = 2**20
"""Measured numbers whose estimates are computed at once."""

_LARGEST = 2.0**53
"""Doubles hold every integer up to here."""


_UNREADABLE = (DpnbError, msgspec.MsgspecError, ArithmeticError, LookupError, TypeError, ValueError)


Words = tuple[str, str | None, float | None, float | None, float | None, str | None]
"""The query, the fields of its `AnswerSummary` and the error in words; None if there is no answer.

A plain tuple of atoms, which the garbage collector does not visit: a log has very many.
"""


class _StoredMeasurement(msgspec.Struct, gc=False):
    """The released values of a row, as `dpnb.mechanisms.measurement` writes them."""

    values: list[int]
    exponent: int
    sigma: str


_MEASUREMENTS = msgspec.json.Decoder(_StoredMeasurement, strict=False)  # integers are stored as texts


class _StoredAnswer(msgspec.Struct, frozen=True, gc=False):
    """The measurements of a row, from the first observation on."""

    id: int
    query: str
    values: list[list[int]]
    exponents: list[int]
    sigmas: tuple[float, ...]
    tau: float | None


@dataclass(frozen=True)
class _Form:
    """What queries have in common that differ only in which rows count, requested with the same arguments.

    `reader` returns their estimates; it is None if they must be read one by one.
    """

    before: str
    after: str
    reader: Callable[[StackedObservations], EstimateReader[StackedObservations]] | None
    cells: int
    numbers: int


def without_answer(query: str) -> Words:
    """The words of a row that has no answer."""
    return query, None, None, None, None, None


class ReleaseReader:
    """Reads released rows whose estimates are computed cell by cell from plain measurements.

    `reader_of` returns the estimates of a plan with these arguments, before they are given observations.
    """

    def __init__(self, reader_of: Callable[[str, StoredRequest], EstimateReader[CombinedObservations]]) -> None:
        self._reader_of = reader_of

    def read(
        self, rows: Sequence[StoredRelease], by_id: Callable[[Sequence[int]], Sequence[StoredRelease]]
    ) -> dict[int, Words]:
        """The releases by their ids; those are missing that must be read one by one.

        `by_id` returns rows by their ids, for the earlier observations of refined answers.
        """
        found: dict[int, Words] = {}
        forms: dict[tuple[str, str], _Form] = {}
        groups: dict[tuple[str, str, int, bool], list[_StoredAnswer]] = {}
        others = _Observations(rows, by_id)
        for row in rows:
            try:
                rest, where = split_filter(row.plan)
                form = forms.get((rest, row.arguments))
                if form is None:
                    form = forms[rest, row.arguments] = self._form(rest, row.arguments)
                query = printable(form.before + describe_filter(where) + form.after)
                if row.status != "released":
                    found[row.id] = without_answer(query)
                elif form.reader is not None:
                    answer = others.of(row, query, form.numbers)
                    if answer is not None:
                        key = rest, row.arguments, len(answer.values), answer.tau is None
                        groups.setdefault(key, []).append(answer)
            except _UNREADABLE:
                continue
        for (rest, arguments, *_), answers in groups.items():
            with suppress(DpnbError):
                found |= _estimated(forms[rest, arguments], answers)
        return found

    def _form(self, rest: str, arguments: str) -> _Form:
        plan, request = Plan.from_json(rest), StoredRequest.from_json(arguments)
        before, after = describe_unfiltered(plan, request.view)
        is_plain = not isinstance(plan.aggregation, Discovery) and not isinstance(
            request.view, Proportions | BoundsView
        )
        if is_plain and not request.groups and '"batch"' not in arguments:
            with suppress(DpnbError):  # the plan may be refused by now
                reader = self._reader_of(rest, request)
                cells = reader.query.cells
                numbers = cells * sum(feature.slots for feature in reader.query.features)
                return _Form(before, after, reader.over if cells else None, cells, numbers)
        return _Form(before, after, None, 0, 0)


def _estimated(form: _Form, answers: Sequence[_StoredAnswer]) -> Iterator[tuple[int, Words]]:
    """The releases of one form with the same number of observations."""
    if form.reader is None:
        return
    n_observations = len(answers[0].values)
    at_once = max(1, MAX_NUMBERS // (form.numbers * n_observations))
    for start in range(0, len(answers), at_once):
        part = answers[start : start + at_once]
        values = np.array([one.values for one in part], np.float64)
        exact = np.abs(values).max(axis=(1, 2)) <= _LARGEST
        with np.errstate(over="ignore", under="ignore"):
            values = np.ldexp(values, np.array([one.exponents for one in part])[:, :, None])
        usual = exact & np.isfinite(values).all(axis=(1, 2))
        part, values = [one for one, plain in zip(part, usual.tolist(), strict=True) if plain], values[usual]
        if not part:
            continue
        stacked = StackedObservations(values, [one.sigmas for one in part], [one.tau for one in part], form.cells)
        reader = form.reader(stacked)
        for one, answer, error in zip(part, reader.summaries(len(part)), reader.errors(len(part)), strict=True):
            yield one.id, (one.query, *answer, error)


class _Observations:
    """The measurements of rows, and of the earlier rows with which they are combined."""

    def __init__(
        self, rows: Sequence[StoredRelease], by_id: Callable[[Sequence[int]], Sequence[StoredRelease]]
    ) -> None:
        self._rows = {row.id: row for row in rows}
        self._combined = {row.id: _ids(row) for row in rows if row.observations != f"[{row.id}]"}
        missing = sorted({number for ids in self._combined.values() for number in ids} - self._rows.keys())
        for start in range(0, len(missing), MAX_STORED):
            self._rows |= {row.id: row for row in by_id(missing[start : start + MAX_STORED])}
        self._numbers: dict[str, float] = {}

    def of(self, row: StoredRelease, query: str, numbers: int) -> _StoredAnswer | None:
        """The measurements of a row; None if they are not plain measurements of all cells."""
        ids = self._combined.get(row.id)
        rows = [row] if ids is None else [self._rows[number] for number in ids]
        values, exponents, sigmas = [], [], []
        for one in rows:
            is_whole = one is row or ('"groups"' not in one.arguments and '"batch"' not in one.arguments)
            if one.result is None or not is_whole:
                return None
            stored = _MEASUREMENTS.decode(one.result)
            if len(stored.values) != numbers:
                return None
            values.append(stored.values)
            exponents.append(stored.exponent)
            sigmas.append(self._number(stored.sigma))
        tau = rows[0].tau
        return _StoredAnswer(
            row.id, query, values, exponents, tuple(sigmas), None if tau is None else self._number(tau)
        )

    def _number(self, text: str) -> float:
        if text not in self._numbers:
            self._numbers[text] = float.fromhex(text)
        return self._numbers[text]


def _ids(row: StoredRelease) -> list[int]:
    """The rows whose measurements a row combines, in order; empty if they cannot be read."""
    try:
        return sorted(msgspec.json.decode(row.observations, type=list[int]))
    except msgspec.MsgspecError:
        return []
