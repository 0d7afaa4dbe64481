"""A unit is found by what tells units apart, whatever type the column has in which it is named."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends.memory.prepare.prepared_table import prepare_all, units_named
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.curator.personal_statement import names_unit
from dpnb.schema import Bounded

DAY = datetime.date(2020, 1, 2)
UUID = uuid.UUID(int=5)

FOUND: list[tuple[list[Any], str, Any]] = [
    (["a", "b", None], "b", "b"),
    (["a", "A", "a "], "A", "A"),
    (["5", "05", "5.0"], "05", "05"),
    ([5, -5, 5 + 2**60], "-5", -5),
    ([5, -5, 5 + 2**60], str(5 + 2**60), 5 + 2**60),
    ([2**53, 2**53 + 1], str(2**53 + 1), 2**53 + 1),
    ([2**64 - 1, 2**64 - 2], str(2**64 - 2), 2**64 - 2),
    ([2**70, 2**70 + 1], str(2**70 + 1), 2**70 + 1),
    ([1.0, 2.0, None], "2", 2.0),
    ([1, 2], "2.0", 2),
    ([0.1, 0.2], "0.1", 0.1),
    ([True, False], "False", False),
    ([pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-03"), pd.NaT], "2020-01-02", pd.Timestamp("2020-01-02")),
    ([pd.Timestamp("2020-01-02T03:04"), None], "2020-01-02 03:04", pd.Timestamp("2020-01-02T03:04")),
    ([DAY, "x", None], "2020-01-02", DAY),
    ([UUID, uuid.UUID(int=6)], str(UUID), UUID),
    ([Decimal("1.50"), Decimal(2)], "2", Decimal(2)),
    ([(1, 2), {}, "x"], "x", "x"),
]


def numbered(column: pd.Series[Any], said: str, unit_type: Any = None) -> tuple[list[int], np.ndarray]:
    tables = {"": pd.DataFrame({"person": column, "row": range(len(column))})}
    units = {"": PrivacyUnit("person", 9)}
    prepared = prepare_all(tables, {"": {"row": Bounded(0, 99)}}, units)[""]
    whose = np.full(len(column), -1)
    whose[prepared.numbers["row"].astype(int)] = prepared.units
    return units_named(tables, units, names_unit(said, unit_type)), whose


@pytest.mark.parametrize(("values", "said", "meant"), FOUND)
@pytest.mark.parametrize("as_objects", [False, True])
def test_a_unit_is_found_by_its_name(values: list[Any], said: str, meant: Any, as_objects: bool) -> None:
    column = pd.Series(values, dtype=object if as_objects or max(map(_size, values)) > 2**64 else None)
    found, whose = numbered(column, said)
    assert found == [whose[values.index(meant)]]


def _size(value: Any) -> float:
    return value if isinstance(value, int) else 0


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["a", None], "None"),
        (["a", None], "nan"),
        ([1.0, None], "nan"),
        ([1.0, None], ""),
        ([pd.Timestamp("2020-01-02"), pd.NaT], "NaT"),
        ([5, 6], "5_0"),
        ([5, 6], "٥"),
        ([50, 6], "5e1"),
        ([5, 6], "5.4"),
        ([2**53], str(2**53 + 1)),
        ([float(2**53)], str(2**53 + 1)),
        ([1, 0], "True"),
        (["a"], "a "),
    ],
)
def test_nobody_else_is_found(values: list[Any], said: str) -> None:
    assert numbered(pd.Series(values), said)[0] == []


def test_a_name_of_several_types_is_told_apart_by_its_type() -> None:
    column = pd.Series([5, "5", "2020-01-02", DAY], dtype=object)
    assert numbered(column, "5")[0] == [0, 1]
    assert numbered(column, "5", "number")[0] == [0]
    assert numbered(column, "5", "text")[0] == [1]
    assert numbered(column, "2020-01-02")[0] == [2, 3]
    assert numbered(column, "2020-01-02", "text")[0] == [2]
    assert numbered(column, "2020-01-02", "time")[0] == [3]


def test_units_of_several_tables_have_one_number() -> None:
    tables = {"a": pd.DataFrame({"p": [5, 6], "x": 0}), "b": pd.DataFrame({"p": ["6", 6, 7], "x": 0})}
    units = {name: PrivacyUnit("p", 9) for name in tables}
    prepared = prepare_all(tables, {name: {"x": Bounded(0, 1)} for name in tables}, units)
    assert units_named(tables, units, names_unit("6")) == [1, 2]
    assert units_named(tables, units, names_unit("6", "number")) == [1]
    assert prepared["b"].units.tolist() == [1, 2, 3]
