"""Random and mutated bodies of requests, made from those of real frames."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

import dpnb
from dpnb._request import ALWAYS, LaunchMechanism, Release, ReleaseBatch, SelectGroups
from dpnb._target import Target
from dpnb.errors import DpnbError, ExecutionError
from dpnb.interactive.calls import execute
from dpnb.wire.decoding import decode_envelope, encode_envelope
from dpnb.wire.messages import Envelope

SCHEMA = {
    "x": dpnb.Bounded(-3, 8),
    "k": dpnb.Bounded(0, 5, integer=True),
    "g": dpnb.Categories(["a", "b", "c"]),
    "n": dpnb.Categories([1, 2, 3]),
    "d": dpnb.Dates("2020-01-01", "2020-12-31"),
    "t": dpnb.Text(max_length=5),
}
ROWS = pd.DataFrame(
    {
        "who": [1, 1, 2, 3, 3, 4, 5],
        "x": [0.5, -9.0, 3.0, float("nan"), 8.0, 2.5, 1.0],
        "k": [0, 5, 2, 3, 3, 4, 1],
        "g": ["a", "b", "c", "a", "z", "b", "c"],
        "n": [1, 2, 3, 1, 1, 2, 9],
        "d": pd.to_datetime(["2020-01-01", "2020-05-05", "2020-12-31", "2021-01-01", None, "2020-02-29", "2019-01-01"]),
        "t": ["a", "bb", "secret", "", None, "Straße", "only"],
    }
)
"""The last unit is the only one with some of its values: its table without it is a neighbour."""

TARGET = Target("mu", Fraction(1, 1000))


def session_of(rows: pd.DataFrame, folder: Path, name: str) -> dpnb.Session:
    """A session with a large budget and a fixed seed."""
    return dpnb.Session(
        rows,
        name="fuzz",
        privacy_unit="who",
        max_rows_per_unit=2,
        budget=dpnb.Budget(epsilon=50, delta=1e-5, discovery_delta=1e-6),
        schema=SCHEMA,
        ledger=folder / f"{name}.dpnb",
        not_private_test_seed=7,
    )


def neighbours(folder: Path) -> tuple[dpnb.Session, dpnb.Session]:
    """Sessions over two neighbouring tables."""
    return session_of(ROWS, folder, "with"), session_of(ROWS[ROWS["who"] != 5], folder, "without")


def valid_bodies(session: dpnb.Session) -> list[Any]:
    """The bodies of requests that real code makes, as parsed JSON."""
    df = session.frame
    public = pd.DataFrame({"k": [0, 1, 2], "rate": [1.5, 2.5, 3.5], "zone": ["p", "q", None]})
    merged = df.merge(public, on="k")
    queries = [
        df["x"].mean(),
        df["x"].sum(),
        df[(df["x"] > 1) & ~df["g"].isin(["a", "b"])].groupby(["g", "k"])["x"].sum(),
        df.groupby("g").size(),
        df["g"].value_counts(normalize=True),
        df["x"].quantile([0.25, 0.5]),
        df["x"].std(),
        df[["x", "k"]].corr(),
        df[["x", "k"]].describe(),
        df.groupby("t", keys=["a", "only"]).size(),
        df.groupby(["n", "g"], keys=[(1, "a"), (3, "c")])["x"].mean(),
        df.discover("t"),
        df.groupby(df["d"].dt.month).size(),
        df.groupby(df["d"].dt.to_period("Q"))["x"].mean(),
        df[df["d"] >= "2020-03-01"].count_units(),
        df[df["t"].str.lower().str.contains("s")]["x"].clip(0, 2).sum(),
        df[df["t"].str.len() > 2]["x"].fillna(1).round(1).mean(),
        merged["rate"].mean(),
        merged.groupby("zone").size(),
        df.groupby(dpnb.cut(df["x"], [-3, 0, 2, 8])).size(),
        (df["x"] / (df["k"] + 1)).abs().mean(),
        df["x"].where(df["x"] > 0, df["k"]).sum(),
        df["x"].find_bounds(),
        df["n"].astype(float).mean(),
        df.bound_contributions(max_rows_per_unit=1).groupby("g")["x"].sum(),
        df.regress("x", on=["k", "g"]),
        df.groupby("k").size().cumsum(),
        df.groupby("g")["x"].mean(weights="k", population=True),
        df.regress("x", on=["n"], weights="k"),
        df.bound_contributions(max_rows_per_unit=1).table_one("g", ["x", "k", "n"], numbers={"k": "median"}),
        df.survival("x", df["n"] == 1, by="g", periods=3)._counts,
    ]
    calls: list[Any] = [Release(query.plan, query.view, TARGET) for query in queries]
    counts = df.groupby("g").size()
    for steps in (
        df.regress(df["x"] > 0, on=["k", "g"], family="logistic"),
        df.regress("k", on=["x", "n"], family="poisson"),
    ):
        calls += [Release(steps._plan(at, steps._of.start), steps._view_of(at), TARGET) for at in (0, 3)]
    calls += [
        SelectGroups(counts.plan, 1, Fraction(1, 100)),
        ReleaseBatch(tuple(Release(query.plan, query.view, TARGET) for query in (counts, df.groupby("k").size()))),
    ]
    launches = [
        session.partition("g"),
        session.delegate(name="sub", mu=0.01),
        session.above_threshold(threshold=3, epsilon=0.01, name="scan"),
        session.noise_reduction(df["x"].sum(), initial_mu=0.001, max_mu=0.01, name="nr"),
    ]
    assert launches
    for number, launch in enumerate(session._core.account.tree.sync().values()):
        calls.append(LaunchMechanism(f"launch {number}", launch.mechanism))
    return [json.loads(encode_envelope(Envelope(f"r{number}", call))) for number, call in enumerate(calls)]


COLUMN_K, COLUMN_T = {"op": "column", "name": "k"}, {"op": "column", "name": "t"}
LEVEL = {"name": "g", "expression": {"op": "column", "name": "g"}}
JUNK: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 1.0, 0.5, -0.0, 1e-300, 1e100, -1e308, 2**31, 2**63 - 1, -(2**63)),
    *("", "a", "only", "x", "k", "g", "t", "2020-01-01", "1/0", "1e999", "9" * 50, "(a+)+$", "\x00", "é"),
    *([], {}, [[]], [["a"]], [1, 1], ["a", 1], COLUMN_K, COLUMN_T, {"op": "column", "name": "who"}),
    {"op": "literal", "value": "b"},
    {"op": "lookup", "name": "l", "inner": [COLUMN_T], "keys": [["a"], ["bb"], ["only"]], "values": ["u"]},
    {"op": "lookup", "name": "l", "inner": [COLUMN_K], "keys": [["x"]], "values": [1.0], "low": 1.0, "high": 1.0},
    {"op": "cut", "inner": COLUMN_K, "edges": [0.0, 1e300], "labels": ["u"], "dates": True},
    {"type": "part", "source": "", "by": LEVEL, "key": "a"},
    {"type": "join", "left": "", "right": ""},
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a parsed JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """The value in a place."""
    for key in path:
        value = value[key]
    return value


def mutated(bodies: list[Any], chance: random.Random) -> Any:
    """A body with one to three changes: junk, a part of another body, a part removed, repeated or nested."""
    body = copy.deepcopy(chance.choice(bodies))
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        places = [path for path in paths(body["request"]) if path]
        if not places:
            break
        path = ("request", *chance.choice(places))
        parent, key = at(body, path[:-1]), path[-1]
        match chance.randrange(8):
            case 0 | 1:
                parent[key] = copy.deepcopy(chance.choice(JUNK))
            case 2 | 3 | 4:  # something of the same kind
                kind, tag = (
                    type(parent[key]),
                    set(parent[key]) & {"op", "of", "view"} if isinstance(parent[key], dict) else 0,
                )
                other = chance.choice(bodies)["request"]
                same = [
                    one for place in paths(other) if type(one := at(other, place)) is kind
                    and (not tag or set(one) & {"op", "of", "view"} == tag)
                ]  # fmt: skip
                if same:
                    parent[key] = copy.deepcopy(chance.choice(same))
            case 5:
                del parent[key]
            case 6 if isinstance(parent, list):
                parent.insert(0, copy.deepcopy(parent[key]))
            case 6:
                if isinstance(parent[key], dict) and "op" in parent[key]:
                    for _ in range(chance.choice([1, 5, 80, 130])):
                        parent[key] = {
                            "op": chance.choice(["not", "isna", "seconds", "as_number"]),
                            "inner": parent[key],
                        }
            case 7:
                number = parent[key]
                if isinstance(number, int | float) and not isinstance(number, bool):
                    parent[key] = chance.choice([number + 1, -number, number * 1e150, 0, 1e-200, int(number) * 10**9])
                elif isinstance(number, str):
                    parent[key] = chance.choice([number.upper(), number * 3, number[:-1], "g", "x", "mean", "cov"])
    body["id"] = f"f{chance.getrandbits(60)}"
    return body


def outcome(session: dpnb.Session, body: bytes) -> tuple[str, str]:
    """What a client sees of a request, apart from the noisy numbers.

    Raises
    ------
    AssertionError
        It failed after its charge, or with an error that is not dpnb's.
    """
    try:
        envelope = decode_envelope(body)
        ids = execute(session._mechanisms, envelope.request, envelope.conditions or ALWAYS)
    except ExecutionError as error:
        raise AssertionError(f"failed after the charge: {error.__cause__!r} {error.__context__!r}") from error
    except DpnbError as error:
        return type(error).__name__, str(error)
    releases = session._core.releases
    for charge in releases.account.ledger.by_id(ids):
        if charge.measurement is not None:  # a stored row must stay readable
            assert len(releases.answer_of(charge).keys) >= 0
    return "answer", f"{ids} {session.ledger.count}"
