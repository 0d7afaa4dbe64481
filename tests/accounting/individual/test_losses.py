"""What a unit loses is never under-counted, and what it has left never over-counted."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.individual import IndividualFilter, losses_of_linear_query, per_instance_losses, remaining_of
from dpnb.errors import InvalidValueError


@given(st.lists(st.floats(0, 1.7e308), max_size=6), st.floats(1e-300, 1e300), st.integers(1, 100))
def test_loss_of_a_linear_query_is_never_below_the_exact_one(norms: list[float], sigma: float, order: int) -> None:
    # An array: in a list, a float beyond 2^53 may be a whole number that numpy rounded, and is raised.
    losses = losses_of_linear_query(np.array(norms, dtype=np.float64), sigma=sigma, order=order)
    largest = np.finfo(np.float64).max
    exact_losses = [order * Fraction(v) ** 2 / (2 * Fraction(sigma) ** 2) for v in norms]
    for loss, truth in zip(losses.tolist(), exact_losses, strict=True):
        assert Fraction(loss) >= min(truth, Fraction(largest))
        assert Fraction(loss) <= truth * (1 + Fraction(1, 2**50)) + Fraction(math.ulp(0.0))


def test_loss_of_a_norm_of_one_at_sigma_one_is_exactly_a_half_times_the_order() -> None:
    assert losses_of_linear_query([1.0, 0.0, 2.0], sigma=1).tolist() == [0.5, 0.0, 2.0]
    assert losses_of_linear_query([1.0], sigma=0.5, order=3).tolist() == [6.0]


def test_a_capped_loss_is_never_affordable() -> None:
    losses = losses_of_linear_query([1e300], sigma=1e-300)
    assert np.isfinite(losses).all()
    _, active = IndividualFilter(Fraction(2) ** 999, units=1).step(losses)
    assert not active[0]
    with pytest.raises(InvalidValueError, match="below"):
        IndividualFilter(Fraction(2) ** 1000, units=1)


def test_a_noise_scale_is_the_double_it_is_also_when_it_is_a_long_one() -> None:
    above = np.longdouble(1) + np.finfo(np.longdouble).eps
    below = np.longdouble(1) - np.finfo(np.longdouble).epsneg
    assert losses_of_linear_query([1.0], sigma=above)[0] >= Fraction(1) / (2 * Fraction(*above.as_integer_ratio()) ** 2)
    assert losses_of_linear_query([1.0], sigma=below)[0] > 0.5


def test_remaining_is_never_negative() -> None:
    assert remaining_of([0.25, 0.5, 0.75], budget=0.5).tolist() == [0.25, 0, 0]


@pytest.mark.parametrize("settings", [{"sigma": 0}, {"sigma": 1, "order": 0.5}])
def test_bad_settings_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(InvalidValueError):
        losses_of_linear_query([1.0], **settings)  # type: ignore[arg-type]


# --- per-instance losses ----------------------------------------------------------------------------------------------

FINITE = st.floats(-1.7e308, 1.7e308)


@given(st.lists(st.lists(FINITE, min_size=2, max_size=2), min_size=1, max_size=4), st.floats(1e-100, 1e100))
def test_per_instance_loss_is_never_below_the_exact_one(rows: list[list[float]], sigma: float) -> None:
    answer = rows[0]
    largest = Fraction(np.finfo(np.float64).max)
    for row, loss in zip(rows, per_instance_losses(answer, rows, sigma=sigma, order=2).tolist(), strict=True):
        truth = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(answer, row, strict=True)) / Fraction(sigma) ** 2
        assert Fraction(loss) >= min(truth, largest)
        assert Fraction(loss) <= truth * (1 + Fraction(1, 2**48)) + 3 * Fraction(math.ulp(0.0))


def test_per_instance_loss_is_the_divergence_of_the_two_answers_in_both_directions() -> None:
    from scipy import integrate, stats

    rows, sigma, order = np.array([0.0, 1.0, 3.0]), 1.5, 3.0
    medians = [np.median(np.delete(rows, i)) for i in range(3)]
    losses = per_instance_losses([np.median(rows)], [[median] for median in medians], sigma=sigma, order=order)
    for median, loss in zip(medians, losses, strict=True):
        with_unit, without = stats.norm(np.median(rows), sigma), stats.norm(median, sigma)
        for p, q in ((with_unit, without), (without, with_unit)):

            def density(x: float, p: stats.norm = p, q: stats.norm = q) -> float:
                return float(np.exp(order * p.logpdf(x) + (1 - order) * q.logpdf(x)))

            moment, _ = integrate.quad(density, -40, 40, points=[0, 3])
            assert math.log(moment) / (order - 1) == pytest.approx(loss, rel=1e-7)


def test_per_instance_and_individual_losses_of_a_sum_are_equal() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 0.0]])
    total = vectors.sum(axis=0)
    losses = per_instance_losses(total, total - vectors, sigma=2, order=4)
    assert losses.tolist() == losses_of_linear_query([5.0, 0.0, 1.0], sigma=2, order=4).tolist()


def test_a_filter_by_per_instance_losses_is_not_private() -> None:
    """Unit 0 decides whether unit 1 is excluded, so an answer tells about unit 0 what its own loss does not."""

    def active(rows: list[float]) -> list[bool]:  # of a median of these rows, by the loss of each in this table
        without = [[np.median(np.delete(rows, i))] for i in range(len(rows))]
        losses = per_instance_losses([np.median(rows)], without, sigma=1)
        return IndividualFilter(1, units=len(rows)).step(losses)[1].tolist()

    with_unit, without_unit = active([5.0, 10.0, 10.0, 10.0]), active([10.0, 10.0, 10.0])
    assert with_unit[1:] == without_unit, "here unit 0 has no influence on the others"
    with_unit, without_unit = active([0.0, 0.0, 10.0]), active([0.0, 10.0])
    assert with_unit[1:] != without_unit

    def individually(rows: list[float]) -> list[bool]:  # of a sum, by what each unit adds
        return IndividualFilter(1, units=len(rows)).step(losses_of_linear_query(rows, sigma=1))[1].tolist()

    assert individually([0.0, 0.0, 10.0])[1:] == individually([0.0, 10.0])


@pytest.mark.parametrize(
    ("answer", "without"), [([1.0], [1.0]), ([1.0], [[1.0, 2.0]]), ([np.nan], [[1.0]]), (["x"], [["y"]])]
)
def test_refusals_of_per_instance_losses_are_constant(answer: object, without: object) -> None:
    with pytest.raises(InvalidValueError, match=r"^answer and without must be finite numbers"):
        per_instance_losses(answer, without, sigma=1)  # type: ignore[arg-type]
