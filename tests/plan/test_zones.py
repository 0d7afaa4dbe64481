"""Dates in the local time of a declared zone, in memory: the same as pandas gives, for every row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import msgspec
import pytest

import dpnb
from contracts import zones
from dpnb._plan.expressions.nodes import Compare, ExtractDatePart, Literal, Period
from dpnb._plan.expressions.rules import dtype_of
from dpnb.errors import PlanError, SchemaError
from dpnb.schema import ColumnType, schema_from
from dpnb.times import EPOCH, zone_between

BERLIN = dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin")


@pytest.mark.parametrize("column", ["a", "o", "n", "s"])
@pytest.mark.parametrize("zone", zones.ZONES)
def test_expressions_are_those_of_pandas_over_both_changes_of_the_clock(zone: str, column: str) -> None:
    case = zones.zoned(zone)
    nodes = zones.nodes_of(zone, case.schema, column)
    assert len(nodes) > 200
    expected = zones.wanted(zone, case.expected[column])
    assert zones.differences(zones.in_memory(case.table, case.schema, nodes), expected) == []


@pytest.mark.parametrize("zone", zones.ZONES)
def test_a_fixed_distance_from_utc_is_found_out(zone: str) -> None:
    case, declared = zones.zoned(zone), zones.zoned(zone).schema["a"]
    assert isinstance(declared, dpnb.Dates)
    expected = zones.wanted(zone, case.expected["a"])
    for _, ahead in declared.offsets[:2]:
        fixed = dpnb.Dates(*zones.DECLARED[zone], zone=zone, offsets=[(0, ahead)])
        schema = {**case.schema, "a": fixed}
        found = zones.in_memory(case.table, schema, zones.nodes_of(zone, schema, "a"))
        different = zones.differences(found, expected)
        assert {"minute", "periods D"} & {*different} or {"hour", "periods h"} <= {*different}


def test_local_times_are_those_of_zoneinfo_around_every_change_of_the_clock() -> None:
    for name in sorted(available_timezones())[::120]:
        zone, info = zone_between(name, -2_208_988_800, 2_145_916_800, "zone"), ZoneInfo(name)
        assert [*zone.local_starts] == sorted(zone.local_starts)
        for start in zone.starts[::3]:
            for apart in (-7200, -3600, -1, 0, 1, 1799, 3600):
                moment = EPOCH + timedelta(seconds=start + apart)
                local = moment.replace(tzinfo=UTC).astimezone(info)
                assert local.utcoffset() == timedelta(seconds=zone.ahead(start + apart))
                shown = local.replace(tzinfo=None) + timedelta(seconds=1800)
                seconds = (shown - EPOCH) // timedelta(seconds=1)
                both = [shown.replace(tzinfo=info, fold=fold).timestamp() for fold in (0, 1)]
                assert (zone.instant(seconds), zone.last_instant(seconds)) == (both[0], max(both))


# --- declarations -----------------------------------------------------------------------------------------------------


def test_bounds_are_local_times_and_contain_the_whole_days() -> None:
    assert BERLIN.low == datetime(2023, 12, 31, 23, tzinfo=UTC).timestamp()
    assert BERLIN.high == pytest.approx(datetime(2024, 12, 31, 23, tzinfo=UTC).timestamp(), abs=1e-5)
    assert (
        dpnb.Dates("2018-11-04", "2018-12-01", zone="America/Sao_Paulo").low
        == datetime(2018, 11, 4, 3, tzinfo=UTC).timestamp()
    )  # the first instant of a day without midnight
    last = dpnb.Dates("2018-01-01", "2018-02-17", zone="America/Sao_Paulo")
    assert last.high == pytest.approx(datetime(2018, 2, 18, 3, tzinfo=UTC).timestamp(), abs=1e-5)  # 23 o'clock twice


def test_equal_declarations_are_equal_however_they_are_written() -> None:
    aware = dpnb.Dates("2023-12-31T23:00Z", "2024-12-31T22:59:59.999999+00:00", zone="Europe/Berlin")
    assert aware == BERLIN
    assert dpnb.Dates("2024-01-01", "2024-12-31", zone="UTC") == dpnb.Dates("2024-01-01", "2024-12-31")


@pytest.mark.parametrize("last", ["2024-10-27T02:30", "2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "2024-11-01"])
def test_a_stored_declaration_comes_back_equal(last: str) -> None:
    column = dpnb.Dates("2024-10-27T02:10+01:00" if last == "2024-11-01" else "2024-01-01", last, zone="Europe/Berlin")
    again = msgspec.json.decode(msgspec.json.encode(column), type=ColumnType)
    assert (again, again.low, again.high) == (column, column.low, column.high)  # type: ignore[union-attr]
    assert b"zone" not in msgspec.json.encode(dpnb.Dates("2024-01-01", "2024-12-31"))  # as before there were zones


def test_a_later_tz_database_changes_no_stored_declaration(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = msgspec.json.encode(BERLIN)
    monkeypatch.setattr(dpnb.times, "zone_info", lambda name, what: ZoneInfo("Asia/Tokyo"))
    zone_between.cache_clear()
    try:
        assert msgspec.json.decode(stored, type=ColumnType) == BERLIN
        assert dpnb.Dates("2024-01-01", "2024-12-31", zone="Europe/Berlin") != BERLIN  # a ledger refuses it
        pinned = dpnb.Dates(
            "2024-01-01", "2024-12-31", zone="Europe/Berlin", offsets=[[*pair] for pair in BERLIN.offsets]
        )
        assert pinned == BERLIN
    finally:
        zone_between.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"zone": "Europe/Brelin"}, "zone of the tz database.*'Europe/Brelin'"),
        ({"zone": "../etc/passwd"}, "zone of the tz database"),
        ({"zone": 2}, "zone must be a text"),
        ({"offsets": [(0, 3600)]}, "offsets must be left out"),
        ({"zone": "Europe/Berlin", "offsets": [(5, 0), (1, 0)]}, "ascending pairs"),
        ({"zone": "Europe/Berlin", "offsets": [(5, 10**6)]}, "ascending pairs"),
        ({"zone": "Europe/Berlin", "last": "9999-12-31"}, "changes more than 1,000 times"),
    ],
)
def test_a_declaration_that_cannot_be_kept_is_refused(arguments: dict[str, object], match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        dpnb.Dates(**{"first": "2024-01-01", "last": "2024-12-31", **arguments})  # type: ignore[arg-type]


# --- plans ------------------------------------------------------------------------------------------------------------

SCHEMA = schema_from(
    {
        "d": BERLIN,
        "e": dpnb.Dates("2023-01-01", "2023-12-31", zone="Europe/Berlin"),
        "u": dpnb.Dates("2024-01-01", "2024-12-31"),
    }
)
D = zones.frame_of(SCHEMA)["d"]


def test_constants_say_their_distance_from_utc() -> None:
    assert (D >= "2024-06-02")._node.right == Literal("2024-06-02T00:00:00+02:00")
    assert (datetime(2024, 6, 2, tzinfo=UTC) <= D)._node.right == Literal("2024-06-02T02:00:00+02:00")
    assert (D >= "1990-07-01")._node.right == Literal("1990-07-01T00:00:00+02:00")  # beyond the declared dates
    assert (D >= "1990-01")._node.right == Literal("1990-01-01T00:00:00+01:00")


def test_a_plan_that_hides_its_zone_is_refused() -> None:
    for node in (
        Compare(">=", D._node, Literal("2024-06-02")),
        ExtractDatePart("hour", D._node),
        Period("day", D._node),
    ):
        with pytest.raises(PlanError, match="Europe/Berlin"):
            dtype_of(node, SCHEMA)


def test_dates_of_one_zone_are_combined_and_those_of_two_are_not() -> None:
    frame = zones.frame_of(SCHEMA)
    either = frame["d"].where(frame["d"] > "2024-06-01", frame["e"])
    kind = dtype_of(either._node, SCHEMA)
    assert kind.zone.ahead(datetime(2023, 7, 1, tzinfo=UTC).timestamp()) == 7200  # type: ignore[union-attr]
    assert kind.zone.ahead(datetime(2024, 7, 1, tzinfo=UTC).timestamp()) == 7200  # type: ignore[union-attr]
    filled = dtype_of(frame["d"].fillna("2030-07-01")._node, SCHEMA)
    assert filled.zone.ahead(datetime(2030, 6, 30, 22, tzinfo=UTC).timestamp()) == 7200  # type: ignore[union-attr]
    assert filled.zone.ahead(datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()) == 3600  # type: ignore[union-attr]
    with pytest.raises(PlanError, match="dates in Europe/Berlin and in UTC cannot be combined"):
        dtype_of(frame["d"].where(frame["d"] > "2024-06-01", frame["u"])._node, SCHEMA)
    dtype_of((frame["d"] > frame["u"])._node, SCHEMA)  # instants have no zone


def _hours_of_later(frame: Any, name: str) -> Any:
    later = frame[frame[name] >= "2024-06-02"]
    return later.groupby(later[name].dt.hour).size()


def test_titles_say_the_zone_of_hours_and_dates() -> None:
    titles = {
        "u": "count of rows by u.dt.hour (UTC) where u >= '2024-06-02 UTC'",
        "d": "count of rows by d.dt.hour (Europe/Berlin) where d >= '2024-06-02T00:00:00+02:00'",
    }
    for name, title in titles.items():
        assert zones.title_of(lambda f, of=name: _hours_of_later(f, of), SCHEMA) == title
    both = zones.title_of(lambda f: f[f["u"].dt.hour == f["d"].dt.hour].count(), SCHEMA)
    assert both == "count of rows where u.dt.hour == d.dt.hour (u in UTC, d in Europe/Berlin)"
    assert zones.title_of(lambda f: f["u"].median(), SCHEMA) == "median of u (UTC)"
    assert zones.title_of(lambda f: f["d"].dt.day_name().value_counts(), SCHEMA).endswith("(Europe/Berlin)")
    assert "UTC" not in zones.title_of(lambda f: (f["u"] - f["d"]).dt.days.mean(), SCHEMA)


@pytest.mark.parametrize("method", ["tz_convert", "tz_localize"])
def test_a_zone_is_declared_and_not_converted(method: str) -> None:
    with pytest.raises(dpnb.errors.UnsupportedError, match=r"dpnb\.Dates\(first, last, zone='Europe/Berlin'\)"):
        getattr(D.dt, method)("Europe/Berlin")
