"""Expressions of dates in the local time of a zone, with what pandas gives for them, around changes of the clock.

Each is computed for every row, and compared value by value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

import dpnb
from dpnb._backends.lazy.expressions import NarwhalsEvaluator
from dpnb._backends.lazy.lazy_table import LazyTable, engine_table
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.plan import describe_plan
from dpnb._plan.privacy_unit import privacy_unit_from
from dpnb.frame import Frame
from dpnb.frame.view import TableView
from dpnb.schema import Schema, schema_from

DECLARED = {
    "Europe/Berlin": ("2024-01-01", "2024-12-31"),
    "America/New_York": ("2023-11-01", "2024-11-10"),
    "Australia/Lord_Howe": ("2024-03-01", "2024-12-31"),  # by half an hour
    "America/St_Johns": ("2009-10-01", "2010-04-30"),  # at a minute past midnight, back to the day before
    "America/Sao_Paulo": ("2018-01-01", "2018-12-31"),  # at midnight, which one day does not have
    "Pacific/Apia": ("2011-03-01", "2012-05-01"),  # one day is skipped
}
"""The zones, and dates between which the clock is put forward and back."""

ZONES = tuple(DECLARED)


@dataclass(frozen=True)
class Zoned:
    """Rows whose dates are declared in a zone."""

    table: pd.DataFrame
    schema: Schema
    expected: dict[str, pd.Series]  # in the zone, what each column of dates means


def local_instant(text: str, zone: str) -> pd.Timestamp:
    """The instant of a local time, by the rule of `datetime`, in UTC."""
    moment = datetime.fromisoformat(text)
    return pd.Timestamp((moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC))


@cache
def zoned(zone: str) -> Zoned:
    """Instants around each change of the clock of a zone, and others between the declared dates.

    The columns: `a` in the zone, `o` the same instants in another one, `n` local times without a zone, some of which no
    clock shows, and `s` texts, every other with its distance from UTC.
    """
    column = dpnb.Dates(*DECLARED[zone], zone=zone)
    seconds = [column.low + 0.5, column.high - 0.5]
    for change, _ in column.offsets[1:]:
        around = (0, 1e-6, 59, 600, 1800, 3599, 3600, 5400, 7200, 7260, 23 * 3600, 86_400)
        seconds += [change + sign * apart for apart in around for sign in (1, -1)]
    seconds += np.random.default_rng(5).uniform(column.low, column.high, 60).round(6).tolist()
    inside = [second for second in seconds if column.low <= second <= column.high]
    instants = pd.Series(pd.to_datetime((np.array(inside) * 1e6).round().astype("int64"), unit="us", utc=True))
    at_zone = instants.dt.tz_convert(zone)
    naive = at_zone.dt.tz_localize(None)
    skipped = []
    for (_, before), (change, after) in pairwise(column.offsets):
        start, gap = pd.Timestamp(change + before, unit="s"), after - before
        skipped += [start + pd.Timedelta(seconds=gap * share) for share in (0, 0.25, 0.9) if gap > 0]
    naive = pd.Series([*naive[: len(naive) - len(skipped)], *skipped]).astype("datetime64[us]")
    read = pd.Series([local_instant(moment.isoformat(), zone) for moment in naive]).dt.tz_convert(zone)
    read = read.clip(*(pd.Timestamp(end, unit="s", tz="UTC").tz_convert(zone) for end in (column.low, column.high)))
    odd = np.arange(len(naive)) % 2 == 1
    table = pd.DataFrame(
        {
            "i": np.arange(len(naive)),
            "a": at_zone.astype(f"datetime64[us, {zone}]"),
            "o": instants.dt.tz_convert("Asia/Tokyo").astype("datetime64[us, Asia/Tokyo]"),
            "n": naive,
            "s": [(a if states else n).isoformat() for a, n, states in zip(at_zone, naive, odd, strict=True)],
        }
    )
    schema = schema_from({"i": dpnb.Bounded(0, 10**6, integer=True), **dict.fromkeys("aons", column)})
    return Zoned(table, schema, {"a": at_zone, "o": at_zone, "n": read, "s": at_zone.where(odd, read)})


def frame_of(schema: Schema, asked: Callable[..., Any] | None = None) -> Any:
    """A frame of columns, whose queries are never released; `asked` is called with plan and view of each."""
    unit = privacy_unit_from(None, schema)
    return Frame(TableView("", {"": schema}, {"": unit}, asked, lambda _: "0.000001", None))  # type: ignore[arg-type]


def title_of(ask: Callable[[Any], Any], schema: Schema) -> str:
    """The words of the query that a question makes."""
    return str(ask(frame_of(schema, describe_plan)))


# --- expressions, and what pandas gives for them ----------------------------------------------------------------------

Pair = tuple[Callable[[Any], Any], Callable[[pd.Series], Any]]
"""An expression of a column of dpnb, and the same of a series with a zone."""

PARTS = ("year", "quarter", "month", "day", "day_of_year", "day_of_week", "hour", "minute", "second")
FREQUENCIES = {"h": "%Y-%m-%dT%H:00", "D": "%Y-%m-%d", "W": "%Y-%m-%d", "M": "%Y-%m", "Q": "%YQ%q", "Y": "%Y"}
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}


def _periods(series: pd.Series, freq: str) -> Any:
    return series.dt.tz_localize(None).dt.to_period(freq)


def expressions(zone: str) -> dict[str, Pair]:
    """More than 200 expressions of dates of a zone."""
    found: dict[str, Pair] = {}
    for part in PARTS:
        found[part] = (lambda c, p=part: getattr(c.dt, p), lambda s, p=part: getattr(s.dt, p))
        found[f"{part} plus 1"] = (lambda c, p=part: getattr(c.dt, p) + 1, lambda s, p=part: getattr(s.dt, p) + 1)
        found[f"{part} > 3"] = (lambda c, p=part: getattr(c.dt, p) > 3, lambda s, p=part: getattr(s.dt, p) > 3)
    found["day name"] = (lambda c: c.dt.day_name(), lambda s: s.dt.day_name())
    found["month name"] = (lambda c: c.dt.month_name(), lambda s: s.dt.month_name())
    found["date"] = (lambda c: c.dt.date, lambda s: s.dt.date.astype(str))
    found["normalize"] = (lambda c: c.dt.normalize(), lambda s: s.dt.date.astype(str))
    found["floor to days"] = (lambda c: c.dt.floor("D"), lambda s: s.dt.date.astype(str))
    for text in ("%Y-%m-%d", "%Y-%m", "%Y", "%A", "%B"):
        found[f"strftime {text}"] = (lambda c, t=text: c.dt.strftime(t), lambda s, t=text: s.dt.strftime(t))
    for freq, text in FREQUENCIES.items():
        found[f"periods {freq}"] = (
            lambda c, f=freq: c.dt.to_period(f),
            lambda s, f=freq, t=text: (
                _periods(s, f).dt.start_time.dt.strftime(t) if f == "W" else _periods(s, f).dt.strftime(t)
            ),
        )
    changes = dpnb.Dates(*DECLARED[zone], zone=zone).offsets[1:]
    moments = [datetime.fromtimestamp(change, UTC) for change, _ in changes]
    at_change = [moment.astimezone(ZoneInfo(zone)) for moment in moments]
    days = [f"{moment.date()}" for moment in at_change]
    constants: list[Any] = [
        *days,
        *(f"{day}T{time}" for day in days for time in ("00:30", "01:45", "02:30:00", "03:00")),
        *(moment.replace(tzinfo=None).isoformat() for moment in at_change),
        *moments,
        *(pd.Timestamp(moment).tz_convert("America/Lima") for moment in moments),
        *DECLARED[zone],
        "1990-07-01",
        "2035-07-01T12:00",
    ]
    for place, constant in enumerate(constants):
        text = constant if isinstance(constant, str) else constant.isoformat()
        instant = local_instant(text, zone)
        for name in COMPARED:
            found[f"{name} {place} {text}"] = (
                lambda c, n=name, k=constant: COMPARED[n](c, k),
                lambda s, n=name, k=instant: COMPARED[n](s, k),
            )
        found[f"days since {place} {text}"] = (
            lambda c, k=constant: (c - k).dt.days,
            lambda s, k=instant: (s - k).dt.days,
        )
    first, last = (local_instant(text, zone) for text in (days[0], days[-1]))
    found["seconds before"] = (
        lambda c: (days[-1] - c).dt.total_seconds(),
        lambda s: np.floor((last - s).dt.total_seconds()),
    )
    found["between"] = (lambda c: c.between(days[0], days[-1]), lambda s: (s >= first) & (s <= last))
    found["is in"] = (lambda c: c.isin([moments[0], days[0]]), lambda s: s.isin([pd.Timestamp(moments[0]), first]))
    found["bins"] = (
        lambda c: dpnb.cut(c, ["1990-01-01", *sorted({days[0], days[-1]}), "2035-01-01"], labels=["a", "b", "c"]),
        lambda s: pd.cut(
            s.dt.tz_convert("UTC"),
            [local_instant(text, zone) for text in ("1990-01-01", *sorted({days[0], days[-1]}), "2035-01-01")],
            labels=["a", "b", "c"],
        ).astype(object),
    )
    for freq in ("h", "D", "M"):
        for day in days:
            for name in ("lt", "le", "gt", "ge"):
                found[f"periods {freq} {name} {day}"] = (
                    lambda c, f=freq, n=name, d=day: COMPARED[n](c.dt.to_period(f), d),
                    lambda s, f=freq, n=name, d=day: COMPARED[n](_periods(s, f).dt.start_time, pd.Timestamp(d)),
                )
    return found


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "hours": lambda f: f["a"].dt.hour.value_counts(),
    "days": lambda f: f.groupby(f["n"].dt.date).size(),
    "hours of the calendar": lambda f: f["o"].dt.floor("h").value_counts(),
    "later days": lambda f: f[f["n"].dt.date >= "2024-06-02"].count(),
    "later": lambda f: f[f["o"] >= "2024-10-27T02:30"].count(),
    "differences": lambda f: (f["n"] - f["a"]).dt.total_seconds().sum(),
}
"""Some of them as sums over the rows."""


def nodes_of(zone: str, schema: Schema, column: str) -> dict[str, Expression]:
    """The expressions of one column."""
    frame = frame_of(schema)
    return {name: of(frame[column])._node for name, (of, _) in expressions(zone).items()}


def wanted(zone: str, series: pd.Series) -> dict[str, list[Any]]:
    """What pandas gives."""
    return {name: list(of(series)) for name, (_, of) in expressions(zone).items()}


# --- what dpnb gives --------------------------------------------------------------------------------------------------


def in_memory(table: Any, schema: Schema, nodes: dict[str, Expression]) -> dict[str, list[Any]]:
    """The value of each row, by the evaluation of tables in memory."""
    rows = NumpyEvaluator(prepare(table, schema, privacy_unit_from(None, schema)), schema)
    found: dict[str, list[Any]] = {}
    for name, node in nodes.items():
        kind = dtype_of(node, schema)
        if isinstance(kind, Boolean):
            found[name] = rows.truth(node).true.tolist()
        elif isinstance(kind, Categorical):
            found[name] = _labels(kind.values, rows.codes(node).tolist())
        else:
            found[name] = rows.numbers(node).tolist()
    return found


def in_engine(engine: Any, native: Any, schema: Schema, nodes: dict[str, Expression]) -> dict[str, list[Any]]:
    """The same, by an engine; the rows are in the order of `i`."""
    table: LazyTable = engine_table(engine, native, schema, privacy_unit_from(None, schema), {})
    rows = NarwhalsEvaluator(table, schema)
    columns: dict[str, Any] = {"i": rows.numbers(frame_of(schema)["i"]._node).value}
    for place, node in enumerate(nodes.values()):
        kind, name = dtype_of(node, schema), f"v{place}"
        if isinstance(kind, Boolean):
            columns[name] = rows.truth(node).true
        elif isinstance(kind, Categorical):
            columns[name] = rows.codes(node)
        else:
            columns[name] = rows.numbers(node).value
    frame = rows.frame.with_columns(**{f"x{name}": column for name, column in columns.items()})
    values = pd.DataFrame(engine.collected(frame.select(*(f"x{name}" for name in columns)))).sort_values("xi")
    found: dict[str, list[Any]] = {}
    for place, (name, node) in enumerate(nodes.items()):
        kind, given = dtype_of(node, schema), values[f"xv{place}"].tolist()
        found[name] = _labels(kind.values, given) if isinstance(kind, Categorical) else given
    return found


def _labels(values: tuple[Any, ...], codes: list[int]) -> list[Any]:
    return [values[code] if code >= 0 else None for code in codes]


def differences(found: dict[str, list[Any]], expected: dict[str, list[Any]]) -> list[str]:
    """The expressions that differ in some row."""
    return [name for name in expected if list(found[name]) != list(expected[name])]
