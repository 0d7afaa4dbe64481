"""Parts of a table: every row in one part, every unit in as many as are paid for, each chosen by its own rows alone."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._backends.memory.memory_backend import part
from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare
from dpnb._plan.expressions.nodes import Column, Compare, Literal
from dpnb._plan.join import part_keys, parts_of_unit, table_of
from dpnb._plan.plan import GroupLevel, PartSource
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb._request import LaunchMechanism, PartitionTable, request_from
from dpnb.errors import PlanError
from dpnb.schema import Bounded, Categories, Text

SCHEMA = {"site": Categories(["a", "b", "c"]), "x": Bounded(0, 5), "note": Text()}
BY = GroupLevel("site", Column("site"))
PERSON = PrivacyUnit("who", 6)

tables = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", "c", "elsewhere"]), st.floats(0, 5)), max_size=30
)


def prepared(rows: list[tuple[int, str, float]]) -> PreparedTable:
    frame = pd.DataFrame(rows, columns=["who", "site", "x"]).assign(note="")
    return prepare(frame, SCHEMA, PERSON)


def parts(rows: list[tuple[int, str, float]], most: int | None) -> dict[str, list[tuple[int, float]]]:
    """Each part as its rows: the unit's name, and x."""
    found = {}
    for key in "abc":
        table = part(prepared(rows), SCHEMA, PartSource("", BY, key, most))
        found[key] = sorted(zip(table.names[table.units].tolist(), table.numbers["x"].tolist(), strict=True))
    return found


@given(tables)
def test_parts_hold_every_row_that_has_a_key_once(rows: list[tuple[int, str, float]]) -> None:
    whole = prepared(rows)
    inside = whole.taken(np.flatnonzero(whole.codes["site"] >= 0))
    expected = sorted(zip(inside.names[inside.units].tolist(), inside.numbers["x"].tolist(), strict=True))
    assert sorted(row for part_rows in parts(rows, None).values() for row in part_rows) == expected


@given(tables, st.integers(1, 3))
def test_a_unit_is_in_at_most_as_many_parts_as_allowed_and_whole_in_each(
    rows: list[tuple[int, str, float]], most: int
) -> None:
    limited, unlimited = parts(rows, most), parts(rows, None)
    for who in range(6):
        sites = [key for key, found in limited.items() if who in dict(found)]
        there = [key for key, found in unlimited.items() if who in dict(found)]
        assert len(sites) == min(most, len(there))
        for key in sites:
            assert [row for row in limited[key] if row[0] == who] == [row for row in unlimited[key] if row[0] == who]


@given(tables, st.integers(1, 3), st.randoms(use_true_random=False))
def test_who_else_is_there_and_in_which_order_changes_no_units_part(
    rows: list[tuple[int, str, float]], most: int, random: Any
) -> None:
    whole = parts(rows, most)
    without = [row for row in rows if row[0] != 0]
    random.shuffle(without)
    assert parts(without, most) == {key: [row for row in found if row[0] != 0] for key, found in whole.items()}


@pytest.mark.parametrize(
    ("unit", "keys", "asked", "expected"),
    [
        (PrivacyUnit(), 6, None, (1, None)),
        (PrivacyUnit(), 6, 1, (1, None)),
        (PERSON, 9, None, (6, None)),
        (PERSON, 4, None, (4, None)),
        (PERSON, 9, 2, (2, 2)),
        (PERSON, 9, 8, (6, None)),  # a person has six rows
        (
            PrivacyUnit("who", None, ContributionBounds(max_groups=2, max_rows_per_group=3)),
            9,
            None,
            (9, None),
        ),  # of one question, not of all
        (PrivacyUnit("who", None, ContributionBounds(max_norm=2.0)), 9, 1, (1, 1)),
    ],
)
def test_parts_of_a_unit_follow_from_its_rows_and_from_what_is_asked(
    unit: PrivacyUnit, keys: int, asked: Any, expected: tuple[int, int | None]
) -> None:
    assert parts_of_unit(unit, keys, asked) == expected


@pytest.mark.parametrize("asked", [0, -1, 1.5, "two", True])
def test_a_limit_must_be_a_whole_number(asked: Any) -> None:
    with pytest.raises(PlanError, match="whole number"):
        parts_of_unit(PERSON, 4, asked)


def test_a_row_is_in_one_part() -> None:
    with pytest.raises(PlanError, match="each row is a unit"):
        parts_of_unit(PrivacyUnit(), 4, 2)


def test_keys_are_public_or_refused() -> None:
    assert part_keys(Column("site"), SCHEMA) == ("a", "b", "c")
    assert part_keys(Compare(">", Column("x"), Literal(1)), SCHEMA) == (False, True)
    with pytest.raises(PlanError, match="texts"):
        part_keys(Column("note"), SCHEMA)
    with pytest.raises(PlanError, match="must be public"):
        part_keys(Column("x"), SCHEMA)


def test_what_parts_share_is_read_back_from_the_ledger() -> None:
    outer = PartSource("visits", BY, "a", 2)
    stored = LaunchMechanism("sites", PartitionTable(outer, BY)).text
    request = request_from(stored)
    assert isinstance(request, LaunchMechanism)
    assert isinstance(request.mechanism, PartitionTable)
    assert request.mechanism.part("b") == PartSource(outer, BY, "b", None)
    assert table_of(request.mechanism.part("b")) == "visits"
    altered = json.loads(stored)
    altered["mechanism"]["by"] = 3
    with pytest.raises(msgspec.ValidationError):
        request_from(json.dumps(altered))
