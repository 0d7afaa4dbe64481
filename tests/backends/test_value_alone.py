"""What a value counts as depends on that value alone, whatever else is in its column and whatever type that forces."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import warnings
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpnb._backends.memory.prepare import columns, unit_ids, values
from dpnb._backends.memory.prepare.columns import by_value, column_of, objects
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._backends.memory.prepare.unit_ids import assign_unit_ids, unit_labels
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, plain

BIG = 2**53 + 1
"""A double cannot hold it."""

KEYS = Categories([0, 1, 2.5, 5, 7]), Categories([True, "a", "7", BIG, 3])

SINGLE: list[Any] = [
    *(0, 1, 7, -1, BIG, 2**62 + 1, 2**63, 10**400),
    *(0.0, -0.0, 1.0, 2.5, 0.1, 1e300, 5e-324, math.nan, math.inf, -math.inf),
    *(True, False, np.True_, None, pd.NA, pd.NaT),
    *(1 + 0j, 7 + 0j, 2.5 - 0j, 1 + 2j, complex(math.nan, 0), complex(math.nan, math.nan), complex(1, math.inf)),
    *(np.complex64(1), np.complex64(1 + 1j), np.clongdouble(7), np.complex128(5 + 1e-300j)),
    *(np.longdouble(7), np.longdouble("0.1"), np.float16(2.5), np.float32(0.1), np.int8(5), np.uint64(2**64 - 1)),
    *(decimal.Decimal("2.5"), decimal.Decimal(7), decimal.Decimal("sNaN"), fractions.Fraction(5, 2)),
    *("a", "7", "2.5", "1e3", "", "nan", "2000-01-01", np.str_("a"), b"7", b"\xff"),
    *(datetime.date(2000, 1, 1), datetime.datetime(2000, 1, 1, 5), pd.Timestamp("2000-01-01", tz="America/Lima")),
    *(np.datetime64("2000-01-01"), np.datetime64(5, "ns"), np.timedelta64(5, "ns"), np.timedelta64(7, "s")),
    *(datetime.timedelta(days=7), pd.Timedelta(5), pd.Period("2000-01-01"), pd.Interval(0, 1)),
    *((), (1,), frozenset(), object()),
]
"""Values of every type, several of which count in several columns."""

CONTAINERS: dict[str, Callable[[list[Any]], pd.Series]] = {
    "as pandas has it": pd.Series,
    "objects": lambda given: pd.Series(objects(given), dtype=object),
    "categorical": lambda given: pd.Series(pd.Categorical(given)),
    "nullable": lambda given: pd.Series(given).convert_dtypes(),
    "as numpy has it": lambda given: pd.Series(np.array(given)),
    "as Arrow has it": lambda given: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(given))),
}


def kept(given: list[Any], held: list[Any]) -> list[bool]:
    """Which values a library has not changed while it put them into a column."""

    def same(one: Any, other: Any) -> bool:
        if isinstance(one, pd.Interval):  # beside a missing number pandas makes its ends doubles, which are equal
            return repr(one) == repr(other)
        try:
            one, other = plain(one), plain(other)
            if isinstance(one, bool) != isinstance(other, bool):  # numpy makes True beside a number 1, which is equal
                return False
            return bool(one == other) or (one != one and other != other)
        except Exception:  # noqa: BLE001
            return one is other

    return [same(*pair) for pair in zip(given, held, strict=True)]


def counts_as(series: pd.Series, of: int) -> list[list[Any]]:
    """What each of the first rows counts as, in every kind of column, and whose row it is."""
    column = column_of(nw.from_native(series, series_only=True))
    found: list[Any] = [  # without the sign of a zero, which libraries drop and nothing is computed from
        list(map(repr, (by_value(read, column)[:of] + 0.0).tolist())) for read in (values.floats, values.seconds)
    ]
    found += [values.codes_of(column, keys)[:of].tolist() for keys in KEYS]
    codes, texts = values.texts(column)
    found.append([[*texts, None][code] for code in codes[:of]])
    units, names = assign_unit_ids(unit_labels(column))
    found.append([[*names, None][unit] for unit in units[:of]])
    return list(map(list, zip(*found, strict=True)))


def others_move(given: list[Any], container: str, *extras: Any) -> list[tuple[Any, Any]]:
    """Values that count as something else with an extra one in their column than without it, and that one."""
    make = CONTAINERS[container]

    def counted(*added: Any) -> list[tuple[bool, list[Any]]] | None:
        """Of each value whether it was kept and what it counts as; None where the library makes no such column."""
        try:
            column = make([*given, *added])
            held = column.to_list()[: len(given)]
        except Exception:  # noqa: BLE001
            return None
        return [*zip(kept(given, held), counts_as(column, len(given)), strict=True)]

    moved: list[tuple[Any, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = counted()
        for extra in extras:
            after = counted(extra)
            if before is not None and after is not None:
                pairs = zip(given, before, after, strict=True)
                moved += [(value, extra) for value, (a, was), (b, becomes) in pairs if a and b and was != becomes]
    return moved


@pytest.mark.parametrize("container", CONTAINERS)
def test_no_other_value_counts_otherwise_for_an_added_one(container: str) -> None:
    dates = [pd.Timestamp("2000-01-01"), pd.Timestamp("1950-01-01 05:00")]
    for group in ([0, 1, BIG], [1.0, 2.5, 7.0, 0.1], [True, None], ["a", "7"], [1 + 0j, 7.0], dates):
        assert not others_move(group, container, *SINGLE)


@given(st.lists(st.sampled_from(SINGLE), max_size=4), st.sampled_from(SINGLE), st.sampled_from(list(CONTAINERS)))
@example([1, 7, 2.5], 1j, "as pandas has it")
@example([7.0], np.longdouble(1), "as numpy has it")
@example([-0.0], 1 + 0j, "as pandas has it")
@example([pd.Interval(0, 1)], complex("nan"), "as pandas has it")
@example([True], 0, "as numpy has it")
def test_no_mixture_of_values_moves_for_an_added_one(given_: list[Any], extra: Any, container: str) -> None:
    assert not others_move(given_, container, extra)


def test_one_complex_value_takes_nothing_from_a_column() -> None:
    without = prepare(pd.DataFrame({"x": pd.Series([5.0, 7.0])}), {"x": Bounded(0, 10)}, PrivacyUnit())
    beside = prepare(pd.DataFrame({"x": pd.Series([5.0, 7.0, 1j])}), {"x": Bounded(0, 10)}, PrivacyUnit())
    assert beside.numbers["x"].tolist()[:2] == without.numbers["x"].tolist() == [5.0, 7.0]
    assert np.isnan(beside.numbers["x"][2])


def test_the_former_rule_for_complex_numbers_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def former(value: Any) -> float:
        try:
            return math.nan if isinstance(value, complex) else float(value)
        except Exception:  # noqa: BLE001
            return math.nan

    monkeypatch.setattr(values, "_float", former)
    assert others_move([5.0, 7.0], "as pandas has it", 1j) == [(5.0, 1j), (7.0, 1j)]


def test_names_and_texts_that_hang_on_their_type_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (values, unit_ids):
        monkeypatch.setattr(module, "value_of", columns.plain)
    assert others_move([5.0, 7.0], "as pandas has it", 1j) == [(5.0, 1j), (7.0, 1j)]
    assert others_move([7.0], "as numpy has it", np.longdouble(1)) == [(7.0, 1)]
