"""The continual counter: its noise, its totals, and an adversary who chooses what is counted from what was released."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpnb.accounting import GDP
from dpnb.accounting.conversions import mu_from_epsilon
from dpnb.accounting.individual import IndividualFilter, OnExhausted
from dpnb.accounting.prefix_sums import prefix_sums_norm_squared, square_root_coefficients
from dpnb.errors import InvalidValueError
from dpnb.mechanisms import ContinualCounter, NotPrivateSeededSource

STEPS = 6
COUNTS = [5, 0, 7, 1, 0, 3]


def totals(source: NotPrivateSeededSource, mu: float = 0.5, **options: object) -> tuple[list[float], list[float]]:
    counter = ContinualCounter(STEPS, loss=GDP(mu), source=source, **options)  # type: ignore[arg-type]
    found = [counter.add(count) for count in COUNTS]
    return [one.estimate for one in found], [one.scale for one in found]


def test_with_next_to_no_noise_the_totals_are_the_prefix_sums() -> None:
    found, scales = totals(NotPrivateSeededSource(1), mu=1e6)
    assert found == pytest.approx(np.cumsum(COUNTS), abs=1e-3)
    assert max(scales) < 1e-5


def test_scale_grows_with_what_one_unit_changes() -> None:
    _, once = totals(NotPrivateSeededSource(1))
    _, twice = totals(NotPrivateSeededSource(1), max_change=2)
    assert twice == pytest.approx([2 * scale for scale in once])
    assert once[0] == pytest.approx(math.sqrt(prefix_sums_norm_squared(STEPS)) / 2**30 / 0.5)


@pytest.mark.statistical
def test_totals_have_the_stated_noise() -> None:
    """Mean square of the standardised errors and of their last difference; false alarms below one in 10^6."""
    source, runs = NotPrivateSeededSource(2), 4000
    errors = np.array([np.subtract(totals(source)[0], np.cumsum(COUNTS)) for _ in range(runs)])
    scales = np.array(totals(source)[1])

    def holds(assumed: np.ndarray) -> bool:
        squares = ((errors / assumed) ** 2).mean(axis=0)
        return bool((np.abs(squares - 1) < 5.2 * math.sqrt(2 / runs)).all())

    assert np.abs(errors.mean(axis=0) / scales).max() < 5.2 / math.sqrt(runs)
    assert holds(scales)
    assert not holds(np.sqrt(np.arange(1, STEPS + 1)) * scales[0]), "control: noise that adds up"
    wrong = scales * np.where(np.arange(STEPS) == STEPS - 1, 1.15, 1)  # control: one wrong coefficient
    assert not holds(wrong)


@pytest.mark.statistical
def test_an_adaptive_adversary_learns_no_more_than_is_charged() -> None:
    """At (1, 0.01): one unit is counted three times, at steps that are chosen from what was released.

    The excess loss of 200,000 histories has a standard deviation below 2e-4, and the limit is 5 of them above, exceeded
    by chance less than once in a million.  Control: noise as if what one unit adds at two steps were orthogonal.
    """
    steps, runs, epsilon = 32, 200_000, 1.0
    mu = mu_from_epsilon(epsilon, delta="0.01")
    coefficients = np.array(square_root_coefficients(steps), float) / 2**30

    def excess(sigma: float) -> float:
        random = np.random.default_rng(3)
        losses, change = np.zeros(runs), np.zeros((runs, steps))
        change[:, 0] = 1
        for step in range(steps):
            if 0 < step < steps - 1:  # once more, twice, as soon as the noise has not told about the unit so far
                change[:, step] = np.where((change.sum(axis=1) == 1) & (losses < 0.1), 2, 0)
            shift = change[:, : step + 1] @ coefficients[: step + 1][::-1] / sigma
            losses += shift * random.standard_normal(runs) + shift**2 / 2
        return float(np.maximum(0.0, -np.expm1(epsilon - losses)).mean())

    counter = ContinualCounter(steps, loss=GDP(mu), source=NotPrivateSeededSource(1), max_change=3)
    norm = math.sqrt(prefix_sums_norm_squared(steps)) / 2**30
    assert excess(counter.sigma / 2**30) < 0.01 + 1e-3
    assert excess(math.sqrt(1 + 4) * norm / float(mu)) > 0.01 + 1e-3


@pytest.mark.parametrize("mode", ["skip", "drop", "clip"])
def test_one_unit_changes_one_of_the_counts_of_units_that_leave(mode: OnExhausted) -> None:
    """Every unit is left out once; the losses of the others, and so what they do, stay the same."""
    random, units, steps = np.random.default_rng(6), 12, 20
    losses = random.choice([0, 0.03, 0.1, 0.3], (steps, units))

    def counts(kept: list[int]) -> tuple[np.ndarray, np.ndarray]:
        state = IndividualFilter(1, units=len(kept), on_exhausted=mode)
        in_full, absent = np.ones(len(kept), bool), []
        leaving = []
        for row in losses[:, kept]:
            if mode == "clip":
                state, paid = state.step_clipped(row)
                active = paid >= row
            else:
                state, active = state.step(row)
            leaving.append(int((in_full & ~active).sum()))
            in_full &= active
            absent.append(int((~active).sum()))
        return np.array(leaving), np.array(absent)

    everyone = list(range(units))
    leaving, absent = counts(everyone)
    changes = [counts(everyone[:unit] + everyone[unit + 1 :]) for unit in everyone]
    assert max(np.abs(leaving - other).sum() for other, _ in changes) == 1
    assert max(np.abs(absent - other).sum() for _, other in changes) > 2, "control: how many are absent at each step"


def test_horizon_is_fixed() -> None:
    counter = ContinualCounter(1, loss=GDP(1), source=NotPrivateSeededSource(1))
    counter.add(3)
    with pytest.raises(InvalidValueError, match="all are used"):
        counter.add(3)
    assert counter.steps == 1


@pytest.mark.parametrize("count", [1.5, "2", True, None])
def test_counts_that_are_not_integers_are_refused_without_being_shown(count: object) -> None:
    counter = ContinualCounter(2, loss=GDP(1), source=NotPrivateSeededSource(1))
    with pytest.raises(InvalidValueError, match=r"count: must be an integer; got \w+; count whole units"):
        counter.add(count)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="max_change"):
        ContinualCounter(2, loss=GDP(1), source=NotPrivateSeededSource(1), max_change=0)
