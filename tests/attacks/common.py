"""What the published attacks share: seeded sessions, and how far one unit moves what they release.

Two sessions with the same seed draw the same noise, so the difference of their answers is that of their exact sums, up
to one step of the grid on which answers lie.  An attack needs nothing but the public interface.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import dpnb

__all__ = ["CONTAINERS", "EXACT", "Ask", "Floats", "answer", "in_container", "session", "told_apart"]

Floats = NDArray[np.float64]
Ask = Callable[[Any], Any]
"""A question: from the session's frame to a query."""

EXACT = 1e-4
"""What the grid of the answers and the rounding of noise scales can add to a ratio that is at most 1."""

CONTAINERS = ("pandas", "polars", "lazy polars", pytest.param("duckdb", marks=pytest.mark.slow))


def in_container(table: pd.DataFrame, container: str) -> Any:
    """The table in another library's container, as that library itself converts it."""
    if container == "pandas":
        return table
    library = importlib.import_module(container.split()[-1])
    if container == "duckdb":
        return library.connect().from_df(table)
    frame = library.from_pandas(table)
    return frame.lazy() if container == "lazy polars" else frame


def session(table: Any, schema: dict[str, Any], **more: Any) -> dpnb.Session:
    """A session with a large budget, reproducible noise and a ledger in memory."""
    arguments = {"budget": dpnb.Budget.gdp(1000), "ledger": ":memory:", "not_private_test_seed": 5, **more}
    return dpnb.Session(table, name="attacked", schema=schema, **arguments)


def answer(table: Any, schema: dict[str, Any], ask: Ask, mu: float = 1.0, **more: Any) -> Any:
    """One question, released to a session of its own."""
    return ask(session(table, schema, **more).frame).release(mu=mu)


def told_apart(rows: Any, others: Any, schema: dict[str, Any], *asks: Ask, **more: Any) -> float:
    """How well the best of several releases tells two neighbouring tables apart, as a multiple of its charged mu.

    Sums of other sizes have other noise, so each is measured in its own noise scale.  Mu-GDP is kept exactly if the
    result is at most 1; only sums and counts may be asked for, since means are computed from several of them.
    """
    frames = [session(table, schema, **more).frame for table in (rows, others)]
    return max(_ratio(*(ask(frame).release(mu=1) for frame in frames)) for ask in asks)


def _ratio(one: Any, other: Any) -> float:
    scales = [np.ravel(np.asarray(each.noise_scale, np.float64)) for each in (one, other)]
    values = [np.ravel(np.asarray(each.estimate, np.float64)) for each in (one, other)]
    if len(values[0]) != len(values[1]) or (scales[0] != scales[1]).any():
        return float("inf")
    steps = (values[0] - values[1]) / scales[0]
    return float(np.sqrt(np.sum(np.where(np.isnan(steps), np.inf, steps) ** 2)) / one.cost.mu)
