"""Noise that a seed reproduces.

Kind: noise
Fault: Noise came from a generator of numpy or Python that the analyst can seed, or whose state follows from its
outputs; with the same seed two mechanisms have the same noise, and the difference of their answers has none.
Reported: IBM/differential-privacy-library#27; IBM/differential-privacy-library#31; privcount/privcount#65
dpnb: Noise comes from random bits of the operating system; `not_private_test_seed` marks every display as not
private.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import session

TABLE = pd.DataFrame({"x": [1.0, 0.0] * 20, "g": ["a", "b"] * 20})
SCHEMA = {"x": dpnb.Bounded(0, 1), "g": dpnb.Categories(["a", "b"])}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda made: made.frame["x"].sum().release(mu="0.001").estimate,
    "groups": lambda made: made.frame.groupby("g").count().release(mu="0.001").estimate.iloc[0],
}


def attack(draw: Callable[[], float]) -> bool:
    """Whether seeding the generators of the process repeats an answer."""
    seen = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002  (what an analyst can do)
        seen.append(draw())
    return seen[0] == seen[1]


def released(name: str) -> Callable[[], float]:
    return lambda: float(QUESTIONS[name](session(TABLE, SCHEMA, not_private_test_seed=None)))


def with_the_generator_of_the_process() -> float:
    return 20 + np.random.normal(0, 1000)  # noqa: NPY002


def with_pythons_generator() -> float:
    return 20 + random.gauss(0, 1000)


@pytest.mark.parametrize("name", ["sum", "groups"])
def test_dpnb_resists(name: str) -> None:
    """Two answers on a grid of a millionth of their noise are equal with a probability below 1e-6."""
    assert not attack(released(name))


def test_dpnb_marks_seeded_noise_in_every_output() -> None:
    answer = session(TABLE, SCHEMA).frame["x"].sum().release(mu=1)
    for text in (str(answer), answer._repr_html_(), str(answer.notice)):
        assert "NOT PRIVATE" in text


@pytest.mark.parametrize("draw", [with_the_generator_of_the_process, with_pythons_generator])
def test_the_control_is_caught(draw: Callable[[], float]) -> None:
    assert attack(draw)
