"""Sums of the steps of logistic and Poisson regressions: what they are, and the most that a unit changes in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from backends.test_gradient import MODELS, SCHEMA, table
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._compile.within import with_windows
from dpnb._plan.measurements import JointAggregation, RegressionModel, ScoreSums, StepView, WeightedAggregation
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.results.estimates.estimate import estimate

TERMS = ("intercept", "a", "b", "c == 'q'", "c == 'r'")
AT = (0.3, -0.8, 0.5, 0.7, -0.2)
ROWS = PrivacyUnit()
PERSONS = PrivacyUnit("u", max_rows=3)
families = pytest.mark.parametrize("family", ["logistic", "poisson"])


def step(model: RegressionModel, at: tuple[float, ...] = AT, rows: int = 1) -> JointAggregation:
    parts = [ScoreSums(model, at, "score"), ScoreSums(model, at, "information"), ScoreSums(model, at, "products", rows)]
    return JointAggregation(tuple(map(WeightedAggregation, parts, (0.6, 0.25, 0.15))))


def exact(model: RegressionModel, frame: pd.DataFrame, unit: PrivacyUnit, at: tuple[float, ...] = AT) -> Any:
    """The sums without noise, by name."""
    query = linear_query(Plan(step(model, at, unit.max_rows or 1)), SCHEMA, unit)
    prepared = prepare(frame, SCHEMA, unit)
    from dpnb._backends.memory import MemoryBackend

    return query, prepared


def test_x() -> None:
    pass
