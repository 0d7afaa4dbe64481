"""Sessions whose dates are declared in a zone: what an analyst and a curator see of it."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory.prepare.values import reader_of
from dpnb.curator.check import check
from dpnb.curator.draft import draft
from dpnb.errors import LedgerError

BERLIN = dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin")
NIGHT = pd.to_datetime(["2024-06-01T22:30Z"] * 40 + ["2024-06-01T21:30Z"] * 20).tz_convert("Europe/Berlin")
TABLE = pd.DataFrame({"t": NIGHT})


def opened(column: dpnb.Dates, ledger: object = ":memory:", table: pd.DataFrame = TABLE) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="clinic",
        budget=dpnb.Budget.gdp(100),
        schema={"t": column},
        ledger=ledger,  # type: ignore[arg-type]
        not_private_test_seed=4,
    )


def count(query: Any) -> int:
    return round(float(query.release(mu=20)))


def test_half_past_midnight_is_in_hour_0_of_its_own_day() -> None:
    df = opened(BERLIN).frame
    assert count(df[df["t"].dt.hour == 0].count()) == 40
    assert count(df[df["t"] >= "2024-06-02"].count()) == 40
    assert count(df[df["t"].dt.date == "2024-06-02"].count()) == 40
    without = opened(dpnb.Dates("2024-01-01", "2024-12-31")).frame
    assert count(without[without["t"].dt.hour == 22].count()) == 40
    assert count(without[without["t"] >= "2024-06-02"].count()) == 0


def test_the_axes_and_titles_of_figures_and_the_schema_say_the_zone() -> None:
    pytest.importorskip("plotly")
    for column in (BERLIN, dpnb.Dates("2024-01-01", "2024-12-31")):
        session = opened(column)
        figure = session.frame.groupby(session.frame["t"].dt.hour).size().release(mu=1).plot()
        assert f"hour of t ({column.zone})" in {figure.layout.xaxis.title.text, figure.layout.yaxis.title.text}
        assert f"({column.zone})" in figure.layout.title.text.replace("</b><br><b>", " ")
        assert f"dates in {column.zone}" in str(session.schema)


def test_a_released_date_is_in_the_zone_and_in_the_log_too() -> None:
    session = opened(BERLIN)
    median = session.frame["t"].quantile([0.1, 0.5]).release(mu=20)
    assert str(median.to_pandas()["estimate"].dtype) == "datetime64[us, Europe/Berlin]"
    single = session.frame["t"].median().release(mu=20)
    assert single.estimate.tzinfo is not None
    assert str(single).splitlines()[1] == "median of t (Europe/Berlin)"
    before = opened(dpnb.Dates("2024-01-01", "2024-12-31")).frame["t"].median().release(mu=20)
    assert before.estimate.tzinfo is None


def test_a_released_date_is_a_constant_of_the_same_instant() -> None:
    df = opened(BERLIN).frame
    moment = pd.Timestamp("2024-06-02 00:00", tz="Europe/Berlin")
    assert (df["t"] >= moment)._node == (df["t"] >= "2024-06-02")._node


# --- rows -------------------------------------------------------------------------------------------------------------

VALUES = [
    *("2024-06-02T00:30", "2024-06-01T22:30Z", "2024-03-31T02:30", "2024-10-27T02:30", "2024-10-27T02:30+01:00"),
    *("9999-12-31T23:59:59-12:00", "0001-01-01", "9999-12-31", "x", "", None, 7, 2.5, True, b"2024-06-02"),
    *(datetime.date(2024, 6, 2), datetime.datetime(2024, 6, 2, 0, 30), datetime.datetime.max, datetime.datetime.min),
    *(pd.Timestamp("2024-06-02 00:30"), pd.Timestamp("2024-06-02 07:30", tz="Asia/Tokyo"), pd.NaT),
    *(np.datetime64("2024-06-02T00:30"), np.datetime64(2**62, "s"), np.datetime64(-(2**62), "us"), object(), ()),
]
"""Values of every kind: none of them is an error."""


def read(values: list[Any]) -> list[str]:
    column = np.empty(len(values), object)
    column[:] = values
    return list(map(repr, reader_of(BERLIN)(column).tolist()))


def test_each_value_is_read_alone_and_none_is_an_error() -> None:
    together = read(VALUES)
    assert together == [read([value])[0] for value in VALUES]
    night = pd.Timestamp("2024-06-01T22:30Z").timestamp()
    assert together.count(repr(night)) == 6
    assert together[2] == repr(pd.Timestamp("2024-03-31T01:30Z").timestamp())  # 03:30
    assert together[3] == repr(pd.Timestamp("2024-10-27T00:30Z").timestamp())  # the first 02:30
    assert together[4] == repr(pd.Timestamp("2024-10-27T01:30Z").timestamp())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", "D"])
def test_times_of_numpy_are_read_as_single_values_are(unit: str) -> None:
    moments = np.array(
        ["2024-03-31T02:30", "2024-10-27T02:30", "2024-06-02", "1700-01-01", "2200-01-01", "NaT"], f"datetime64[{unit}]"
    )
    assert list(map(repr, reader_of(BERLIN)(moments).tolist())) == read(list(moments))


def test_a_row_beyond_the_bounds_counts_as_the_bound_or_not_at_all() -> None:
    table = pd.DataFrame({"t": pd.to_datetime(["2023-12-31T22:30Z"] * 40 + ["2023-12-31T23:30Z"] * 20)})
    clamped = opened(BERLIN, table=table).frame
    assert count(clamped[clamped["t"].dt.year == 2024].count()) == 60
    dropped = opened(dpnb.Dates("2024-01-01", "2024-12-31", outside="drop", zone="Europe/Berlin"), table=table).frame
    assert count(dropped["t"].count()) == 20


# --- ledgers and declarations -----------------------------------------------------------------------------------------


def test_a_ledger_refuses_another_table_of_a_zone_and_takes_its_own_back(tmp_path: Path) -> None:
    session = opened(BERLIN, tmp_path / "clinic.dpnb")
    session.frame.count().release(mu=1)
    others = [(start, ahead + 3600) for start, ahead in BERLIN.offsets]
    for other in (
        dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin", offsets=others),
        dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Paris"),
        dpnb.Dates("2024-01-01", "2024-12-31"),
    ):
        with pytest.raises(LedgerError, match="used with another declaration"):
            opened(other, tmp_path / "clinic.dpnb")
    again = dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin", offsets=BERLIN.offsets)
    opened(again, tmp_path / "clinic.dpnb")


DECLARATION = """
name = "clinic"
budget = { mu = 100 }

[schema]
t = { type = "dates", first = 2024-01-01, last = 2024-12-31, zone = "Europe/Berlin" }
"""


def test_a_declaration_states_the_zone(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(DECLARATION)
    session = dpnb.Session.from_toml(path, TABLE)
    assert session.schema["t"] == BERLIN
    path.write_text(DECLARATION.replace("Berlin", "Brelin"))
    with pytest.raises(dpnb.errors.SchemaError, match=r"clinic.toml, line 6: schema.t: Dates: zone: .*Europe/Brelin"):
        dpnb.Session.from_toml(path, TABLE)


def test_a_draft_has_the_zone_that_the_file_states_and_a_check_misses_it(tmp_path: Path) -> None:
    table = pd.DataFrame({"t": NIGHT, "u": NIGHT.tz_convert("UTC"), "n": NIGHT.tz_localize(None)})
    table.to_parquet(tmp_path / "clinic.parquet")
    text = Path(draft([str(tmp_path / "clinic.parquet")], str(tmp_path / "d.toml")).declaration).read_text()
    stated = {name: column.get("zone") for name, column in tomllib.loads(text)["schema"].items()}
    assert stated == {"t": "Europe/Berlin", "u": None, "n": None}
    columns = "first = 2024-01-01, last = 2024-12-31 }\n"
    (tmp_path / "c.toml").write_text(
        'name = "clinic"\nbudget = { mu = 1 }\n[schema]\n'
        + "".join(f'{name} = {{ type = "dates", {columns}' for name in ("t", "u"))
        + f'n = {{ type = "dates", zone = "Europe/Berlin", {columns}'
    )
    found = {one.text: one.to_fix for one in check(str(tmp_path / "c.toml"), [str(tmp_path / "clinic.parquet")]).advice}
    assert [(text.partition(":")[0], to_fix) for text, to_fix in found.items()] == [
        ("column 't'", True),
        ("column 'n'", False),
    ]
    assert any('zone = "Europe/Berlin"' in text for text in found)


def test_a_rehearsal_has_times_in_the_declared_zone() -> None:
    session = dpnb.Session.rehearse(name="r", budget=dpnb.Budget.gdp(100), schema={"t": BERLIN})
    df = session.frame
    assert count(df[(df["t"] >= "2024-01-01") & (df["t"] < "2025-01-01")].count()) == count(df.count())
