"""The choice of a unit's first rows while a table is prepared, and the order of its rows, against plain definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._backends.contribution import (
    MAX_COMPARED,
    MULTIPLIER,
    PRIME,
    Integers,
    first_by_hash,
    numbered_hash,
    ranks,
    row_hash,
)
from dpnb._backends.memory.prepare import unit_ids
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare
from dpnb._backends.memory.prepare.unit_ids import order_by_unit
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

SCHEMA: Schema = {
    "x": Bounded(-5, 5),
    "d": Dates("2020-01-01", "2021-01-01"),
    "g": Categories([1, 2, 3]),
    "t": Text(),
}


def table(seed: int, rows: int, people: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(chance.integers(0, 500, rows), "D")
    return pd.DataFrame({
        "u": chance.integers(-3, people, rows),
        "x": np.where(chance.random(rows) < 0.1, np.nan, chance.integers(-6, 7, rows)),
        "d": days,
        "g": chance.integers(0, 5, rows),
        "t": chance.choice(["a", "b", "c"], rows),
    })  # fmt: skip


def content(prepared: PreparedTable) -> list[str]:
    """The rows, unit by unit; which of equal rows was kept, and so their order, does not matter."""
    columns = {**prepared.numbers, **prepared.codes}
    return sorted(map(repr, zip(prepared.units.tolist(), *(columns[name].tolist() for name in SCHEMA), strict=True)))


@pytest.mark.parametrize("people", [1, 7, 300, 3000])
@pytest.mark.parametrize("max_rows", [1, 3, 20])
def test_the_rows_that_count_are_those_of_lowest_rank(people: int, max_rows: int) -> None:
    frame = table(people, 3000, people)
    everything = prepare(frame, SCHEMA, PrivacyUnit("u", None))
    first = everything.taken(np.flatnonzero(everything.ranks < max_rows))
    kept = prepare(frame, SCHEMA, PrivacyUnit("u", max_rows))
    assert content(kept) == content(first)


@pytest.mark.parametrize("rows", [1, 17, 5000])
def test_blocks_do_not_change_what_is_prepared(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = table(5, rows, 200)
    whole = prepare(frame, SCHEMA, PrivacyUnit("u", 3))
    monkeypatch.setattr(unit_ids, "ROWS_HASHED_AT_ONCE", 13)
    monkeypatch.setattr("dpnb._backends.memory.blocks.even_blocks.__defaults__", (None, 19))
    parted = prepare(frame, SCHEMA, PrivacyUnit("u", 3))
    assert content(parted) == content(whole)


@given(st.lists(st.integers(-1, 2**22), max_size=200), st.integers(1, 50))
def test_the_two_steps_are_a_stable_order_of_the_rows_with_a_unit(units: list[int], size: int) -> None:
    column = np.array(units, np.int32)
    known = np.flatnonzero(column >= 0)
    expected = known[np.argsort(column[known], kind="stable")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpnb._backends.memory.blocks.even_blocks.__defaults__", (None, size))
        order = order_by_unit(column)
    rows = np.arange(len(column)) if order.coarse is None else order.coarse
    rows = rows if order.fine is None else rows[order.fine]
    assert rows.tolist() == expected.tolist()
    assert order.units.tolist() == column[expected].tolist()


def one_by_one(limbs: list[int]) -> int:
    state = 1
    for limb in limbs:
        state = (state * MULTIPLIER + limb + 1) % PRIME
    return int((state * state % PRIME * MULTIPLIER + state) % PRIME)


@given(st.integers(0, 2**60 - 1), st.lists(st.integers(0, 2**33 - 1), max_size=6))
def test_the_hash_takes_one_limb_after_another(name: int, contents: list[int]) -> None:
    limbs = [limb for value in (name, *contents) for limb in divmod(value, 2**16)]
    assert row_hash([np.array([value]) for value in (name, *contents)]).tolist() == [one_by_one(limbs)]


def test_the_hash_of_very_many_columns_does_not_overflow() -> None:
    contents = [2**33 - 1] * 20_000
    limbs = [limb for value in (5, *contents) for limb in divmod(value, 2**16)]
    assert row_hash([np.array([value]) for value in (5, *contents)]).tolist() == [one_by_one(limbs)]


@pytest.mark.parametrize("largest", [MAX_COMPARED, MAX_COMPARED + 1])
@pytest.mark.parametrize("values", [30, 2**31 - 1])
def test_comparing_and_sorting_choose_the_same_rows(largest: int, values: int) -> None:
    chance = np.random.default_rng(largest)
    sizes: Integers = np.r_[largest, chance.integers(2, 6, 500)]
    content_hash: Integers = chance.integers(0, values, sizes.sum())
    first, tied = first_by_hash(sizes, content_hash, 2)
    units = np.repeat(np.arange(len(sizes)), sizes)
    hashes = pd.Series(numbered_hash(content_hash))
    assert tied.tolist() == hashes.groupby(units).transform(lambda own: own.duplicated().any()).tolist()
    rank = hashes.groupby(units).rank("first").to_numpy() - 1
    assert first[~tied].tolist() == (rank < 2)[~tied].tolist()
    assert ranks(units, units, [content_hash]).max() == largest - 1
