"""``session.schema``: the public declaration, as a mapping and as a table."""

from __future__ import annotations

from typing import Any

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb.errors import PlanError
from dpnb.results.schema import TableSchema, TablesSchema

COLUMNS: dict[str, Any] = {
    "wage": dpnb.Bounded(0, 100.5),
    "age": dpnb.Bounded(18, 99, integer=True, outside="drop"),
    "town": dpnb.Categories(["north", "south"]),
    "code": dpnb.Categories(list(range(1000))),
    "hired": dpnb.Dates("2001-01-01", "2024-12-31"),
    "note": dpnb.Text(),
}
OTHERS: dict[str, Any] = {"dose": dpnb.Bounded(0, 5)}


def session(**changes: Any) -> dpnb.Session:
    table = pd.DataFrame({"p": [1, 1], **{name: [None, None] for name in COLUMNS}})
    arguments: dict[str, Any] = {"name": "s", "budget": dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7)}
    arguments |= {"schema": COLUMNS, "privacy_unit": "p", "max_rows_per_unit": 3, "ledger": ":memory:"}
    return dpnb.Session(**{"table": table, **arguments, **changes})


def several() -> dpnb.Session:
    table = pd.DataFrame({"p": [1], "wage": [1.0], "dose": [1.0]})
    return session(
        table={"jobs": table, "drugs": table},
        schema={"jobs": {"wage": COLUMNS["wage"]}, "drugs": OTHERS},
        max_rows_per_unit={"jobs": 2, "drugs": 7},
        public_size=6000,
        public_rows={"drugs": 9000},
    )


def test_it_is_the_mapping_that_was_declared() -> None:
    schema = session().schema
    assert isinstance(schema, TableSchema)
    assert dict(schema) == COLUMNS
    assert list(schema) == list(COLUMNS)
    assert schema["age"] == COLUMNS["age"]
    assert "age" in schema
    assert "p" not in schema
    assert schema.get("p") is None
    assert schema.get("age") == COLUMNS["age"]


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PlanError, match=r"schema: 'wages' is not a declared column; the columns are 'wage', 'age'"):
        session().schema["wages"]
    with pytest.raises(PlanError, match="is not a table of this session; the tables are 'jobs', 'drugs'"):
        several().schema["wage"]


def test_each_column_shows_type_values_and_what_counts_as_missing() -> None:
    lines = repr(session().schema).split("\n")
    rows = {line.split()[0]: " ".join(line.split()) for line in lines if line.split()[0] in COLUMNS}
    assert rows == {
        "wage": "wage numbers 0 to 100.5 counts as the nearer bound null, NaN, infinity, anything but a number",
        "age": "age whole numbers 18 to 99 counts as missing null, NaN, infinity, anything but a number",
        "town": "town categories 'north', 'south' null, any other value",
        "code": "code categories 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, ... (1,000 in all)"
        " null, any other value",
        "hired": "hired dates in UTC 2001-01-01 to 2024-12-31 counts as the nearer bound null, anything but a date",
        "note": "note text not public null, anything but a text or number",
    }
    assert "  privacy unit: one p (at most 3 rows)" in lines
    html = session().schema._repr_html_()
    assert all(f">{name}<" in html for name in COLUMNS)
    assert "privacy unit: one p (at most 3 rows)" in html


def test_the_declared_length_of_texts_is_shown() -> None:
    schema = session(schema={**COLUMNS, "note": dpnb.Text(max_length=2000)}).schema
    assert "not public; lengths up to 2,000" in repr(schema)
    assert "not public; lengths up to 2,000" in schema._repr_html_()


def test_all_tables_are_shown_with_their_limits_and_public_numbers() -> None:
    schema = several().schema
    assert isinstance(schema, TablesSchema)
    assert list(schema) == ["jobs", "drugs"]
    assert schema["drugs"]["dose"] == OTHERS["dose"]
    shown = repr(schema)
    for part in ("schema of jobs", "schema of drugs", "at most 2 rows", "at most 7 rows", "number of rows: 9,000"):
        assert part in shown
        assert part in schema._repr_html_()
    assert shown.count("public number of units: 6,000") == 2


def test_parts_and_sub_sessions_have_the_schema_of_their_tables() -> None:
    whole = session(accounting="worst-case")
    assert dict(whole.delegate(mu=0.01, name="sub").schema) == COLUMNS
    part = next(iter(whole.partition("town", name="towns").values()))
    assert dict(part.schema) == COLUMNS


def test_names_cannot_move_the_cursor_or_add_markup() -> None:
    odd = {"\x1b[2J<b>": dpnb.Categories(["<script>", "\x1b"])}
    schema = session(table=pd.DataFrame({"p": [1], **{name: ["x"] for name in odd}}), schema=odd).schema
    assert "\x1b" not in repr(schema)
    assert "<script>" not in schema._repr_html_()
    assert "<b>" not in schema._repr_html_().replace("<b>schema</b>", "")


def test_a_rehearsal_says_so() -> None:
    rehearsed = dpnb.Session.rehearse(name="r", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema=OTHERS)
    assert rehearsed.notice is not None
    assert rehearsed.notice in repr(rehearsed.schema)


def test_it_does_not_depend_on_the_rows() -> None:
    shown = {repr(session(table=pd.DataFrame({"p": [1] * n, **{name: [None] * n for name in COLUMNS}})).schema)
             for n in (1, 2, 50)}  # fmt: skip
    assert len(shown) == 1


def test_a_default_that_is_given_is_written_as_the_default() -> None:
    """As TOML gives it: a string of its own.  A ledger compares declarations by their JSON."""
    clamp = "".join(["cl", "amp"])
    for given, usual in (
        (dpnb.Bounded(0, 1, outside=clamp), dpnb.Bounded(0, 1)),  # type: ignore[arg-type]
        (
            dpnb.Dates("2000-01-01", "2001-01-01", outside=clamp, zone="".join(["U", "TC"])),
            dpnb.Dates("2000-01-01", "2001-01-01"),
        ),  # type: ignore[arg-type]
    ):
        assert msgspec.json.encode(given) == msgspec.json.encode(usual)
