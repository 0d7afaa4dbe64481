"""What a curator declares by mistake is refused or said when the session is opened, from the types of the table."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpnb
from dpnb.errors import LedgerError, MissingArgument, PlanError, SchemaError, SchemaWarning, UnsupportedError
from dpnb.ledger import MEMORY

BUDGET = dpnb.Budget(epsilon=1, delta=1e-6)
TIMES = pd.DataFrame({"arrival": pd.date_range("2024-01-01", periods=60, freq="h", tz="Europe/Berlin")})
YEAR = dpnb.Dates("2024-01-01", "2024-12-31")
BERLIN = dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin")
TABLE = pd.DataFrame({"person": range(60), "diagnosis": ["flu", "cold"] * 30, "age": range(60)})


def opened(table: Any, schema: Any, **options: Any) -> dpnb.Session:
    return dpnb.Session(table, name="visits", budget=BUDGET, schema=schema, **{"ledger": MEMORY, **options})


def test_the_example_of_a_missing_argument_has_the_privacy_unit_and_what_it_is() -> None:
    with pytest.raises(
        MissingArgument, match=r'privacy_unit="person".*column that identifies a person.*one row is prot'
    ):
        dpnb.Session(TABLE)  # type: ignore[call-arg]


CONTAINERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "arrow types": lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "polars, lazy": lambda table: pl.from_pandas(table).lazy(),
    "pyarrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_times_that_are_declared_as_anything_else_are_refused_or_said_in_every_container(container: str) -> None:
    for column in (dpnb.Bounded(0, 24), dpnb.Text(), dpnb.Categories(["a"])):
        for table in (TIMES, TIMES.assign(arrival=TIMES["arrival"].dt.tz_localize(None))):
            said = r"column 'arrival'.* dates or times.*; declare dpnb.Dates"
            if container == "pandas":  # which may have inferred the type
                with pytest.warns(SchemaWarning, match=said):
                    opened(table, {"arrival": column})
            else:
                with pytest.raises(SchemaError, match=said):
                    opened(CONTAINERS[container](table), {"arrival": column})


def test_the_types_of_objects_follow_from_rows_and_nothing_is_said() -> None:
    with warnings.catch_warnings(action="error"):
        opened(TIMES.astype(object), {"arrival": dpnb.Bounded(0, 24)})
        opened(TABLE.astype(object), {"diagnosis": dpnb.Bounded(0, 30)})


def test_texts_declared_as_numbers_are_said_since_only_those_that_write_numbers_count() -> None:
    with pytest.warns(SchemaWarning, match="'diagnosis': .* texts: only those that write a number count.*'age'"):
        opened(TABLE.astype(str), {"diagnosis": dpnb.Bounded(0, 30), "age": dpnb.Bounded(0, 90)})


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_zone_that_the_type_states_is_said_where_utc_is_declared(container: str) -> None:
    table = CONTAINERS[container](TIMES)
    with pytest.warns(SchemaWarning, match=r"'arrival': .* Europe/Berlin, .*Dates\(..., zone='Europe/Berlin'\)"):
        opened(table, {"arrival": YEAR})
    warnings.simplefilter("error", SchemaWarning)
    opened(table, {"arrival": BERLIN})
    utc = TIMES.assign(arrival=TIMES["arrival"].dt.tz_convert("UTC"))
    opened(CONTAINERS[container](utc), {"arrival": YEAR})
    hours = TIMES.assign(arrival=TIMES["arrival"].dt.tz_convert("+01:00"))
    if container not in ("polars", "polars, lazy"):  # which have no zones without a name
        opened(CONTAINERS[container](hours), {"arrival": YEAR})


def test_bounds_in_a_zone_do_not_lose_it_and_tz_is_zone() -> None:
    first = pd.Timestamp("2024-01-01", tz="Europe/Berlin")
    with pytest.raises(SchemaError, match=r"first is a time of Europe/Berlin.*write zone='Europe/Berlin'"):
        dpnb.Dates(first, "2024-12-31")
    with pytest.raises(SchemaError, match="last is a time of Europe/Berlin"):
        dpnb.Dates("2023-01-01", first)
    assert dpnb.Dates(first, "2024-12-31", zone="Europe/Berlin") == BERLIN
    assert dpnb.Dates(first.tz_convert("UTC"), "2024-12-31").first == "2023-12-31T23:00:00"
    with pytest.raises(SchemaError, match="write zone='Europe/Berlin'"):
        dpnb.Dates("2024-01-01", "2024-12-31", tz="Europe/Berlin")  # type: ignore[call-arg]


def test_after_the_first_charge_a_copy_of_the_column_has_the_other_declaration(tmp_path: Path) -> None:
    ledger, table = tmp_path / "visits.dpnb", TIMES.assign(arrival=TIMES["arrival"].dt.tz_convert("UTC"))
    session = opened(table, {"arrival": YEAR}, ledger=ledger)
    session.frame.count().release(mu=0.01)
    with pytest.raises(LedgerError, match="zone UTC in the ledger, Europe/Berlin in the session;") as refused:
        opened(table, {"arrival": BERLIN}, ledger=ledger)
    line = re.search(r"table\[.*\] = table\[.*?\]", str(refused.value))
    assert line is not None
    exec(line[0])
    copy = opened(table, {"arrival": YEAR, "arrival_new": BERLIN}, ledger=ledger)
    assert copy.frame["arrival_new"].dt.hour.mean().description
    with pytest.raises(UnsupportedError, match=r"before the first charge; afterwards .* a copy"):
        copy.frame["arrival"].dt.tz_convert("Europe/Berlin")


def test_the_subject_of_a_difference_of_categories_is_named(tmp_path: Path) -> None:
    ledger = tmp_path / "visits.dpnb"
    session = opened(TABLE, {"diagnosis": dpnb.Categories(["flu", "Cold"])}, ledger=ledger)
    session.frame.count().release(mu=0.01)
    with pytest.raises(LedgerError, match="the session lacks 'Cold', the ledger lacks 'cold'"):
        opened(TABLE, {"diagnosis": dpnb.Categories(["flu", "cold"])}, ledger=ledger)


def test_a_forgotten_column_can_be_declared_and_a_misspelled_one_is_named() -> None:
    frame = opened(TABLE, {"age": dpnb.Bounded(0, 90)}).frame
    with pytest.raises(
        PlanError, match="its columns are 'age'; what is not declared can be added to schema= at any time"
    ):
        frame["diagnosis"]
    with pytest.raises(SchemaError, match="column 'arrivel': is not in the table; did you mean 'arrival'"):
        opened(TIMES, {"arrivel": BERLIN})


def test_groups_of_numbers_name_the_declaration_that_makes_them_groups() -> None:
    frame = opened(TABLE, {"age": dpnb.Bounded(0, 90)}).frame
    with pytest.raises(PlanError, match=r"declare dpnb.Categories, or integer=True"):
        frame.groupby("age")
    whole = opened(TABLE, {"age": dpnb.Bounded(0, 90, integer=True)}).frame
    assert whole.groupby("age").size().description
