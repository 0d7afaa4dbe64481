"""What a promise is about reads back from the ledger as it was declared."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._core.ledger_metadata import NOISE, LedgerMetadata
from dpnb._core.tables import PrivateTables
from dpnb.errors import LedgerError
from texts import characters

SCHEMA: dict[str, Any] = {
    "type": dpnb.Bounded(-0.1, 2**60 + 0.5),
    "whole": dpnb.Bounded(0, 10, integer=True),
    "town": dpnb.Categories(["1", 1.5, 2, -(2**63) + 1, True, "é\n"]),
    "note": dpnb.Text(),
    "born": dpnb.Dates("1950-01-01", "2000-12-31T08:00:00.000001"),
}

DECLARED: dict[str, dict[str, Any]] = {
    "rows": {"schema": SCHEMA, "several": False, "privacy_unit": None},
    "persons": {"schema": SCHEMA, "several": False, "privacy_unit": "person", "rows": 3, "norm": 1.25},
    "groups": {"schema": SCHEMA, "several": False, "privacy_unit": "person", "groups": 2, "rows_per_group": 4},
    "one column": {"schema": {"column": dpnb.Text()}, "several": False, "privacy_unit": None},
    "several": {
        "schema": {"column": {"type": dpnb.Text()}, "type": SCHEMA},
        "several": True,
        "privacy_unit": "person",
        "rows": {"column": 2, "type": 5},
    },
    "one of several": {"schema": {"a": SCHEMA}, "several": True, "privacy_unit": "person", "rows": 2},
}


def read(stored: dict[str, str]) -> LedgerMetadata:
    return LedgerMetadata.from_dict(stored, "clinic.dpnb")


def same(one: PrivateTables, other: PrivateTables) -> bool:
    # In Python 1, 1.0 and True are equal; in a promise they are not.
    return repr((one.schemas, one.units)) == repr((other.schemas, other.units))


@pytest.mark.parametrize("declared", DECLARED.values(), ids=DECLARED)
@pytest.mark.parametrize("mode", [None, "skip", "drop", "clip"])
def test_a_promise_reads_back_as_it_was_declared(declared: dict[str, Any], mode: Any) -> None:
    tables = PrivateTables.declared(**declared)
    stored = LedgerMetadata("clinic", tables, None, mode).to_dict()
    got = read({**stored, "budget": "...", "filter": "gdp"})
    sorted_tables = PrivateTables(
        {name: dict(sorted(columns.items())) for name, columns in tables.schemas.items()}, tables.units
    )
    assert same(got.tables, sorted_tables)
    assert (got.name, got.notice, got.on_exhausted) == ("clinic", None, mode)
    assert got.tables.clips_units is (mode == "clip")
    assert got.to_dict() == stored


@given(
    low=st.floats(-1e100, 1e100),
    width=st.floats(1e-3, 1e100),
    values=st.lists(
        st.one_of(st.text(characters), st.booleans(), st.integers(-(2**63) + 1, 2**63 - 1), st.floats(allow_nan=False)),
        min_size=1,
    ),
)
def test_bounds_and_categories_read_back_to_the_last_digit(low: float, width: float, values: list[Any]) -> None:
    try:
        schema = {"x": dpnb.Bounded(low, low + width), "c": dpnb.Categories(values)}
    except dpnb.errors.SchemaError:
        return
    tables = PrivateTables.declared(schema, several=False, privacy_unit=None)
    got = read(LedgerMetadata("clinic", tables, None, "skip").to_dict()).tables
    assert repr(dict(sorted(got.schemas[""].items()))) == repr(dict(sorted(tables.schemas[""].items())))


def test_a_notice_reads_back() -> None:
    tables = PrivateTables.declared(SCHEMA, several=False, privacy_unit=None)
    for notice in NOISE.values():
        assert read(LedgerMetadata("clinic", tables, notice, None).to_dict()).notice == notice


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("schema", "{"),
        ("schema", "[]"),
        ("schema", '{"x":{"type":"vector"}}'),
        ("schema", '{"x":{"type":"bounded","low":2.0,"high":1.0}}'),
        ("schema", '{"x":{"type":"bounded","low":0.0,"high":1.0,"log":true}}'),  # of a later version
        ("privacy_unit", "null"),
        ("privacy_unit", '{"column":null,"max_rows":1,"contribution_bounds":{"days":3}}'),
        ("on_exhausted", "sell"),
        ("noise", "loud"),
    ],
)
def test_what_does_not_read_as_it_was_written_is_refused(name: str, text: str) -> None:
    stored = LedgerMetadata(
        "clinic", PrivateTables.declared(SCHEMA, several=False, privacy_unit=None), None, "skip"
    ).to_dict()
    with pytest.raises(LedgerError, match=r"clinic\.dpnb"):
        read({**stored, name: text})
    with pytest.raises(LedgerError):
        read({key: value for key, value in stored.items() if key != "schema"})


def test_the_texts_are_those_of_ledgers_that_exist() -> None:
    tables = PrivateTables.declared({"x": dpnb.Bounded(0, 1)}, several=False, privacy_unit="person", rows=2)
    assert LedgerMetadata("clinic", tables, None, None).to_dict() == {
        "session_name": "clinic",
        "schema": '{"x":{"type":"bounded","low":0.0,"high":1.0}}',
        "privacy_unit": '{"column":"person","max_rows":2,"contribution_bounds":{}}',
        "noise": "private",
    }
    assert json.loads(msgspec.json.encode(dpnb.Text())) == {"type": "text"}
