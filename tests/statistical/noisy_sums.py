"""Many noisy repetitions of one question, estimated at once: each repetition is a cell of its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.intervals import fixed_radius
from dpnb.results.estimates import IntervalArrays, estimate
from dpnb.schema import Schema

Array = NDArray[np.float64]
ALPHA = Fraction(1, 20)


@lru_cache(maxsize=2)
def standard_noise(seed: int | tuple[int, ...], shape: tuple[int, ...]) -> Array:
    """Normal noise of scale 1: a test scales the same noise for each of its noise levels."""
    return np.random.default_rng(seed).normal(0, 1, shape)


@dataclass(frozen=True)
class Asked:
    """A question with its exact sums, shape (cells, slots), to which noise can be added again and again."""

    query: LinearQuery
    view: AnyView
    schema: Schema
    sums: Array

    def noisy(self, sigma: float, repetitions: int, seed: int) -> Array:
        """The sums with fresh noise, shape (repetitions * cells, slots)."""
        noise = sigma * standard_noise(seed, (repetitions, *self.sums.shape))
        return (self.sums + noise).reshape(-1, self.sums.shape[1])

    def estimates(
        self, mu: float, repetitions: int, seed: int, *, alpha: Fraction = ALPHA, shrink: float = 1.0
    ) -> IntervalArrays:
        """Estimates at a nominal level; `shrink` makes all intervals wrong by a factor, for controls."""
        sigma = self.query.l2_sensitivity_squared**0.5 / mu
        sums = self.noisy(sigma, repetitions, seed)
        radius = fixed_radius([sigma], alpha=alpha) * shrink
        return estimate(self.query, self.view, sums, np.full(len(sums), sigma), np.full(len(sums), radius), self.schema)


def asked(plan: Plan, view: AnyView, table: pd.DataFrame, schema: Schema, unit: PrivacyUnit | None = None) -> Asked:
    """A question put to a table."""
    unit = unit or PrivacyUnit()
    query = linear_query(plan, schema, unit)
    sums = execute(query, prepare(table, schema, unit), schema).reshape(query.cells, -1).astype(np.float64)
    return Asked(query, view, schema, sums)


def covered(found: IntervalArrays, truth: Array) -> Array:
    """How often each number is in its interval.

    Parameters
    ----------
    found : Estimate
        Shape (repetitions * cells, outputs).
    truth : float64 array, shape (cells, outputs)

    Returns
    -------
    float64 array, shape (cells, outputs)
        NaN limits never cover.  A thousandth of the width is allowed for, since sums are on a grid.
    """
    low, high = (end.reshape(-1, *truth.shape) for end in (found.low, found.high))
    widths = np.where(np.isfinite(high - low), high - low, 0.0)
    slack = np.median(widths, axis=0) / 1000
    return ((low - slack <= truth) & (truth <= high + slack)).mean(axis=0)
