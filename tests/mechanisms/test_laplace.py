"""Discrete Laplace noise has exactly its distribution, and its widths are those of direct summation."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dpnb.errors import InvalidValueError
from dpnb.mechanisms.laplace import discrete_laplace, laplace_half_width, laplace_tail
from dpnb.mechanisms.randomness import ExactBernoulli, NoiseSource, NotPrivateSeededSource, SystemNoiseSource
from mechanisms.oracles import Prefetched
from rationals import fractions

ALARM = 1e-7
DRAWS = 50_000
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 5), Fraction(12), Fraction(1000, 23)]
LARGE = Fraction(2**25 * 13, 8)
HUGE = Fraction(10**45 + 7, 3)


def draws(scale: Fraction, seed: int, count: int = DRAWS) -> list[int]:
    source = Prefetched(seed)
    return [discrete_laplace(scale, source) for _ in range(count)]


@cache
def counted(scale: Fraction) -> Counter[int]:
    """The draws of a test and of a part of its control."""
    return Counter(draws(scale, 20260401))


def agrees(seen: list[int], probabilities: list[float]) -> bool:
    """Chi-square at `ALARM`; whatever is expected fewer than ten times is counted together."""
    total = sum(seen)
    expected = [probability * total for probability in probabilities]
    rare = [place for place, times in enumerate(expected) if times < 10]
    kept = [place for place, times in enumerate(expected) if times >= 10]
    observed = [seen[place] for place in kept] + [sum(seen[place] for place in rare)]
    wanted = [expected[place] for place in kept] + [sum(expected[place] for place in rare)]
    if wanted[-1] < 10:
        observed, wanted = [*observed[:-2], sum(observed[-2:])], [*wanted[:-2], sum(wanted[-2:])]
    scaled = [times * total / sum(wanted) for times in wanted]
    return bool(stats.chisquare(observed, scaled).pvalue > ALARM)


def below_or_at(scale: Fraction, x: int) -> float:
    """P(X <= x), in doubles."""
    q = math.exp(-1 / scale)
    return math.exp(x / scale) / (1 + q) if x < 0 else 1 - math.exp(-(x + 1) / scale) / (1 + q)


# --- the distribution -------------------------------------------------------------------------------------------------


def has_the_stated_probabilities(counted: Counter[int], scale: Fraction) -> bool:
    q = math.exp(-1 / scale)
    most = max(map(abs, counted)) + 1
    probabilities = [(1 - q) / (1 + q) * q ** abs(x) for x in range(-most, most + 1)]
    return agrees([*(counted[x] for x in range(-most, most + 1)), 0], [*probabilities, laplace_tail(scale, most)])


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_have_the_stated_probabilities(scale: Fraction) -> None:
    """False alarm 1e-7 each."""
    assert has_the_stated_probabilities(counted(scale), scale)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_control_a_scale_too_large_by_a_twelfth_and_a_zero_that_counts_twice_are_seen(scale: Fraction) -> None:
    assert not has_the_stated_probabilities(Counter(draws(scale * Fraction(13, 12), 20260402)), scale)
    zero_twice = counted(scale).copy()
    zero_twice[0] *= 2
    assert not has_the_stated_probabilities(zero_twice, scale)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [LARGE, HUGE], ids=["2^25 13/8", "10^45/3"])
def test_draws_of_a_large_scale_have_the_stated_probabilities_in_every_size_and_every_residue(scale: Fraction) -> None:
    """False alarm 1e-7 for each of two tests: sixty-four bins, and what is left of a division by 61."""
    found = draws(scale, 20260404)
    edges = [int(float(scale) * stats.laplace.ppf(k / 64)) for k in range(1, 64)]
    share = np.diff([0.0, *(below_or_at(scale, edge) for edge in edges), 1.0])
    bins = Counter(int(np.searchsorted(np.array(edges, dtype=object), x)) for x in found)
    assert agrees([bins[k] for k in range(64)], share.tolist())
    residues = Counter(x % 61 for x in found)
    assert agrees([residues[k] for k in range(61)], [1 / 61] * 61)


@pytest.mark.statistical
@pytest.mark.parametrize("n", [1, 2, 7, 3 << 62, 2**64, 2**64 + 1, 3 << 126], ids=str)
def test_integers_below_n_are_uniform(n: int) -> None:
    """False alarm 1e-7 each.  Without rejection three quarters of 2^64 would give the lowest third twice as often."""
    chance = ExactBernoulli(NotPrivateSeededSource(5), 10**6)
    cells = min(n, 12)
    found = Counter(chance.below(n) * cells // n for _ in range(10_000))
    assert set(found) <= set(range(cells))
    assert n == 1 or agrees([found[k] for k in range(cells)], [1 / cells] * cells)


def test_words_at_the_ragged_end_are_drawn_anew() -> None:
    class Planned:
        private = False

        def words(self, n: int) -> NDArray[np.uint64]:
            return np.array([5] * (n - 2) + [2**64 - 2, 2**64 - 1], dtype=np.uint64)  # used from the end

    for n, expected in ((3, 2), (2**64 - 2, 5), (2**64 - 1, 2**64 - 2), (2**64, 2**64 - 1)):
        # 2^64 is 1 modulo 3: its last word would be one too many.
        assert ExactBernoulli(Planned(), 1).below(n) == expected


@pytest.mark.statistical
@pytest.mark.parametrize(("top", "bottom"), [(0, 1), (1, 10**9), (1, 3), (2**70 - 1, 2**70), (5, 5)])
def test_events_have_probability_exp_of_minus_the_ratio(top: int, bottom: int) -> None:
    """False alarm 1e-7 each."""
    chance = ExactBernoulli(NotPrivateSeededSource(6), 10**6)
    times = sum(chance.happens(top, bottom) for _ in range(20_000))
    assert stats.binomtest(times, 20_000, math.exp(-top / bottom)).pvalue > ALARM


# --- where the words come from ----------------------------------------------------------------------------------------


class Counting:
    """Counts what it is asked for."""

    private = False

    def __init__(self) -> None:
        self.inner = NotPrivateSeededSource(7)
        self.requests = 0
        self.given = 0

    def words(self, n: int) -> NDArray[np.uint64]:
        self.requests += 1
        self.given += n
        return self.inner.words(n)


def test_every_draw_asks_for_words_of_its_own() -> None:
    source = Counting()
    for _ in range(200):
        before = source.requests
        discrete_laplace(LARGE, source)
        assert source.requests > before


@pytest.mark.parametrize(("scale", "words"), [(Fraction(1), 1), (LARGE, 1), (Fraction(2**640 + 1), 11)])
def test_a_draw_takes_as_many_words_whatever_the_scale(scale: Fraction, words: int) -> None:
    source = Counting()
    for _ in range(300):
        discrete_laplace(scale, source)
    assert source.given / 300 < 32 * words


def test_equal_words_give_equal_draws() -> None:
    assert draws(LARGE, 8, 50) == draws(LARGE, 8, 50) != draws(LARGE, 9, 50)


def test_system_words_will_do() -> None:
    assert len({discrete_laplace(LARGE, SystemNoiseSource()) for _ in range(20)}) > 10


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1])
def test_a_source_that_repeats_itself_is_refused(word: int) -> None:
    class Stuck:
        private = False

        def words(self, n: int) -> NDArray[np.uint64]:
            return np.full(n, word, dtype=np.uint64)

    with pytest.raises(InvalidValueError, match=r"source: the bits must be random.*SystemNoiseSource"):
        discrete_laplace(Fraction(7, 5), Stuck())


# --- tails and widths -------------------------------------------------------------------------------------------------


def summed_tail(scale: Fraction, width: int) -> Any:
    """P(|X| > width) to 60 digits, by adding up."""
    with mpmath.workdps(80):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        terms, x = [], mpmath.mpf(1)
        while len(terms) <= width + 1 or x > terms[width + 1] * mpmath.mpf(10) ** -60:
            terms.append(x)
            x *= q
        beyond = 2 * mpmath.fsum(terms[width + 1 :])
        return beyond / (beyond + 1 + 2 * mpmath.fsum(terms[1 : width + 1]))


SMALL_SCALES = fractions(Fraction(1, 20), 12, max_denominator=40)


@given(scale=SMALL_SCALES, width=st.integers(0, 60))
def test_tail_is_the_sum_rounded_up(scale: Fraction, width: int) -> None:
    truth, bound = summed_tail(scale, width), laplace_tail(scale, width)
    with mpmath.workdps(60):
        assert truth * (1 - mpmath.mpf(10) ** -50) <= mpmath.mpf(bound)
        assert mpmath.mpf(math.nextafter(bound, 0.0)) <= truth


@given(scale=SMALL_SCALES, alpha=fractions(Fraction(1, 10**9), Fraction(999, 1000)))
def test_half_width_is_the_smallest_that_is_exceeded_so_rarely(scale: Fraction, alpha: Fraction) -> None:
    width = laplace_half_width(scale, alpha)
    with mpmath.workdps(60):
        exact_alpha = mpmath.mpf(alpha.numerator) / alpha.denominator
        assert summed_tail(scale, width) <= exact_alpha
        assert width == 0 or summed_tail(scale, width - 1) > exact_alpha


@pytest.mark.parametrize(
    "scale", [Fraction(2**25), LARGE, HUGE, Fraction(2**200 + 1, 7)], ids=lambda s: f"{float(s):g}"
)
@pytest.mark.parametrize("alpha", ["0.999", "0.3", "1e-6", "1e-290", "1e-600"])
def test_half_width_of_a_large_scale_is_the_formulas(scale: Fraction, alpha: str) -> None:
    width = laplace_half_width(scale, alpha)
    with mpmath.workdps(400):
        t, miss = mpmath.mpf(scale.numerator) / scale.denominator, mpmath.mpf(alpha)
        bound = t * mpmath.log(2 / (miss * (1 + mpmath.exp(-1 / t))))
        assert bound <= width + 1
        assert width < bound * (1 + mpmath.mpf(2) ** -90)
    if alpha != "1e-600" and scale < 2**60:
        assert laplace_tail(scale, width) <= float(alpha) < laplace_tail(scale, width - 1)


def test_beyond_doubles_the_bound_stays_above_zero() -> None:
    assert laplace_tail(Fraction(1), 10**30) == math.ulp(0.0)
    assert laplace_tail(Fraction(1, 10**9), 0) == math.ulp(0.0)
    assert 0 < laplace_tail(Fraction(1), 743) < 1e-320


@pytest.mark.parametrize("alpha", ["1e-300", "0.999"])
def test_noise_of_hardly_any_scale_has_no_width(alpha: str) -> None:
    assert laplace_half_width(Fraction(1, 10**300), alpha) == laplace_half_width(Fraction(1, 1000), alpha) == 0
    assert discrete_laplace(Fraction(1, 10**300), NotPrivateSeededSource(1)) == 0


@pytest.mark.statistical
def test_draws_beyond_the_half_width_are_as_rare_as_stated() -> None:
    """False alarm 1e-7: at least half as many as allowed, and no more."""
    width = laplace_half_width(LARGE, "0.05")
    times = sum(abs(x) > width for x in draws(LARGE, 20260405, 10_000))
    assert stats.binomtest(times, 10_000, 0.05, alternative="greater").pvalue > ALARM
    assert times > 250


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0, -1, Fraction(-1, 2), 0.5, 1.0, True, "1", None, math.nan])
def test_scale_that_is_no_exact_positive_number_is_refused(bad: Any) -> None:
    source: NoiseSource = NotPrivateSeededSource(1)
    for use in (
        lambda: discrete_laplace(bad, source),
        lambda: laplace_tail(bad, 1),
        lambda: laplace_half_width(bad, "0.05"),
    ):
        with pytest.raises(InvalidValueError, match=r"scale: must be an exact number.*got .*Fractions"):
            use()


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None])
def test_width_that_is_no_whole_number_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"width: must be an integer"):
        laplace_tail(Fraction(1), bad)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 2, "x", None, math.nan, True])
def test_alpha_that_is_no_probability_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="alpha"):
        laplace_half_width(Fraction(1), bad)


def test_source_that_gives_no_words_is_refused() -> None:
    class Broken:
        private = True

        def words(self, n: int) -> Any:
            return np.zeros(n)

    with pytest.raises(InvalidValueError, match=r"source: words\(n\) must return"):
        discrete_laplace(Fraction(1), Broken())
