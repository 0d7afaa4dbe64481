"""Errors, warnings and shapes that depend on rows.

Kind: values
Fault: A value that cannot be read as its column's type stops the query, and the message quotes it; or it changes the
type or the length of the answer. A server returned the text of such exceptions to the analyst.
Reported: opendp/opendp#2587 (data-dependent errors); opendp/opendp#2374;
https://github.com/dscc-admin-ch/lomas/blob/v0.4.1/server/lomas_server/dp_queries/dp_querier.py (lomas)
dpnb: No value raises or warns, and answers to a query have one shape and one type; after the charge there is one
constant error. `tests/statistical/test_attack_differencing.py` watches more: log lines, displays, the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, in_container, session
from statistical.watching import watched

SECRET = "87131-secret"
OTHERS: dict[str, list[Any]] = {"x": [1.0, 2.0, 3.0] * 10, "g": ["a", "b", "a"] * 10, "d": ["2020-01-05"] * 30}
ODD: list[Any] = [SECRET, None, 10**400, [SECRET], {SECRET: 1}, b"\xff", "\ud800", 1j]
SCHEMA = {"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b"]), "d": dpnb.Dates("2020-01-01", "2020-12-31")}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda frame: frame["x"].mean(),
    "groups": lambda frame: frame.groupby("g")["x"].sum(),
    "months": lambda frame: frame.groupby(frame["d"].dt.month).count(),
    "recoded": lambda frame: frame["g"].map({"a": 1, "b": 2}).sum(),
    "quantile": lambda frame: frame["x"].quantile([0.1, 0.5]),
}
Ask = Callable[[pd.DataFrame], Any]


def table(value: Any) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([*values, value], dtype=object) for name, values in OTHERS.items()})


def attack(ask: Ask, odd: list[Any]) -> list[Any]:
    """Values that can be told from an ordinary one by anything but the numbers of the answer."""
    usual = watched(lambda: ask(table("a")))
    return [value for value in odd if watched(lambda value=value: ask(table(value))) != usual]


def released(container: str = "pandas") -> Ask:
    def ask(rows: pd.DataFrame) -> Any:
        frame = session(in_container(rows, container), SCHEMA).frame
        answers = [ask(frame).release(mu=1) for ask in QUESTIONS.values()]
        return [(answer.names, answer.keys, answer.to_pandas().dtypes.astype(str).to_dict()) for answer in answers]

    return ask


def as_the_library_converts(rows: pd.DataFrame) -> Any:
    return float(rows["x"].replace("a", 0).astype(float).sum() * 0)


def test_dpnb_resists() -> None:
    assert attack(released(), ODD) == []


@pytest.mark.parametrize("container", CONTAINERS[1:])
def test_dpnb_resists_in_other_containers(container: str) -> None:
    """With texts: these containers have one type for each column."""
    pytest.importorskip(container.split()[-1])
    texts = [SECRET, "", "9" * 400, "z" * 100_000, "1e999"]
    assert attack(lambda rows: released(container)(rows.astype(str)), texts) == []


def test_the_control_is_caught() -> None:
    assert SECRET in attack(as_the_library_converts, ODD)
    assert SECRET in str(watched(lambda: as_the_library_converts(table(SECRET)))["raised"])
