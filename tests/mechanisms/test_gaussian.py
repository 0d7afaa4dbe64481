"""Noisy sums are the exactly rounded Gaussian, whatever the sums, the scale and the bits."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpnb.errors import InvalidValueError
from dpnb.mechanisms import gaussian
from dpnb.mechanisms.gaussian import Measurement, measure
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from mechanisms.oracles import DIGITS, SIGN, PlannedWords, floor_log2, rounded_by_inversion, words_at_boundary
from pairwise import product

WORD = st.integers(0, 2**64 - 1)
ROUND_SIGMA = 2.0**20  # the output grid is then 1
SIGMAS = [ROUND_SIGMA, 3.7, 0.1, 1.0, 123456.789, 5e9, 2.0**31 * 1.999, 1e-12, 5e-324, 2.5e-310, 1e18, 1e25, 1e300]
SUMS = [0, 1, -1, 12345, -(10**6), 2**53 + 1, 10**17 + 7, 2**63 - 1, -(2**63), 2**63, 2**200 + 12345, -(3**150)]


def noisy(total: int, sigma: float, words: list[int]) -> int:
    """Measure one cell with planned words, all of which must be used."""
    source = PlannedWords(words)
    (value,) = measure([total], sigma=sigma, source=source).values
    assert source.left == []
    return value


# --- agreement with the slow oracle -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("total", "sigma"), product(SUMS, SIGMAS, together=1))
def test_rounding_is_that_of_the_real_number(total: int, sigma: float) -> None:
    words = [int(word) for word in NotPrivateSeededSource(SUMS.index(total) * 100 + SIGMAS.index(sigma)).words(12)]
    measured = measure([total] * 12, sigma=sigma, source=PlannedWords([*words, *range(10)]))
    assert list(measured.values) == [rounded_by_inversion(total, sigma, [word]) for word in words]
    assert measured.exponent == floor_log2(sigma) - 20
    assert measured.sigma == sigma


@given(total=st.integers(-(2**130), 2**130), sigma=st.floats(1e-30, 1e30), words=st.tuples(WORD, WORD, WORD, WORD))
def test_any_sum_scale_and_words_round_like_the_inverse(total: int, sigma: float, words: tuple[int, ...]) -> None:
    planned = [*words, 2**62 + 1, 2**63 + 12345]  # the words may all be zero, which leaves Z unbounded
    source = PlannedWords(planned)
    (value,) = measure([total], sigma=sigma, source=source).values
    assert value == rounded_by_inversion(total, sigma, planned[: len(planned) - len(source.left)])


@given(data=st.data())
def test_mixed_sums_are_measured_cell_by_cell(data: st.DataObject) -> None:
    totals = data.draw(st.lists(st.sampled_from(SUMS) | st.integers(-(2**70), 2**70), min_size=1, max_size=6))
    sigma = data.draw(st.sampled_from(SIGMAS))
    words = [int(word) for word in NotPrivateSeededSource(data.draw(st.integers(0, 10**6))).words(len(totals) + 20)]
    together = measure(totals, sigma=sigma, source=PlannedWords(words))
    for i, total in enumerate(totals):
        assert together.values[i] == rounded_by_inversion(total, sigma, [words[i]])


@pytest.mark.slow
def test_thousands_of_draws_agree_with_the_oracle() -> None:
    source = NotPrivateSeededSource(11)
    words = [int(word) for word in source.words(3000)]
    totals = [(-7) ** (i % 25) for i in range(3000)]
    measured = measure(totals, sigma=1e7, source=PlannedWords([*words, *map(int, source.words(50))]))
    expected = [rounded_by_inversion(total, 1e7, [word]) for total, word in zip(totals, words, strict=True)]
    assert list(measured.values) == expected


# --- the quick path ---------------------------------------------------------------------------------------------------


def test_quick_path_decides_nearly_every_draw() -> None:
    words = NotPrivateSeededSource(12).words(200_000)
    _, decided = gaussian._round_in_doubles(0.0, math.nextafter(2.0**21, 0.0), words)
    undecided = np.count_nonzero(~decided)
    assert 0 < undecided < 200_000 * 3e-4


def test_quick_and_slow_path_give_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = [i * i * i - 10**6 for i in range(1500)]
    quick = measure(totals, sigma=3e8, source=NotPrivateSeededSource(13))
    monkeypatch.setattr(gaussian, "_INVERSE_MARGIN", 1.0)
    _, decided = gaussian._round_in_doubles(0.0, 2.0**20, NotPrivateSeededSource(13).words(1500))
    assert not decided.any()
    assert measure(totals, sigma=3e8, source=NotPrivateSeededSource(13)) == quick


def test_chunks_join_without_a_seam() -> None:
    n, piece = 2 * gaussian._CHUNK + 3, 1009
    totals = (NotPrivateSeededSource(23).words(n) >> np.uint64(30)).astype(np.int64)
    words = NotPrivateSeededSource(14).words(n).tolist()
    whole = measure(totals, sigma=1e8, source=PlannedWords([*words, *[5] * 100]))
    pieces: list[int] = []
    for start in range(0, n, piece):
        part = slice(start, start + piece)
        pieces.extend(measure(totals[part], sigma=1e8, source=PlannedWords([*words[part], *[5] * 100])).values)
    assert list(whole.values) == pieces


@pytest.mark.parametrize("exponent", [1, 10, 61, 62, 63, 64, 65, 200])
def test_both_paths_agree_when_the_grid_is_coarser_than_the_sums(
    exponent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    totals = np.array([2**63 - 1, -(2**63), 2**62, -(2**62) - 1, 3, -1, 0] * 20)
    sigma = 1.75 * 2.0 ** (exponent + 20)
    quick = measure(totals, sigma=sigma, source=NotPrivateSeededSource(22))
    as_python_integers = measure([*totals.tolist(), 2**90], sigma=sigma, source=NotPrivateSeededSource(22))
    monkeypatch.setattr(gaussian, "_INVERSE_MARGIN", 1.0)
    slow = measure(totals, sigma=sigma, source=NotPrivateSeededSource(22))
    assert quick.exponent == exponent
    assert quick.values == slow.values == as_python_integers.values[:-1]


# --- the fall-back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, 1, 7, 10**5, 3 * 10**6, 8 * 10**6])
@pytest.mark.parametrize("total", [0, 3, 5 * 2**17 + 1, -(2**90) + 1])
@pytest.mark.parametrize("sigma", [ROUND_SIGMA, 1.3 * 2.0**37, 0.7])
def test_draw_beside_a_boundary_falls_on_the_right_side(total: int, sigma: float, steps: int) -> None:
    """Words are planted so that Z agrees with a boundary in 64 or 128 binary digits and then departs from it."""
    grid = Fraction(2) ** (floor_log2(sigma) - 20)
    floor = math.floor(total / grid)
    for sign in (SIGN, 0):
        # Below the sum for a set sign bit, above it otherwise; `boundary` is a half-integer multiple of the grid.
        boundary = floor + Fraction(1, 2) + (-steps - 1 if sign else steps + 1)
        threshold = -abs((boundary * grid - total) / Fraction(sigma))
        first, second, third = words_at_boundary(threshold, 3)
        outwards, inwards = (-1, 1)  # a smaller U is further out in the tail
        inner = math.floor(boundary) + (1 if sign else 0)
        outer = math.floor(boundary) + (0 if sign else 1)
        assert noisy(total, sigma, [sign | first, second + inwards]) == inner
        assert noisy(total, sigma, [sign | first, second + outwards]) == outer
        assert noisy(total, sigma, [sign | first, second, third + inwards]) == inner
        assert noisy(total, sigma, [sign | first, second, third + outwards]) == outer


@pytest.mark.parametrize("sign", [0, SIGN])
@pytest.mark.parametrize("more", [[2**63 + 12345], [1, 2**60], [0, 0, 987654321, 2**50], [2**64 - 1, 7]])
def test_word_without_digits_is_rounded_from_further_words(sign: int, more: list[int]) -> None:
    source = PlannedWords([sign, *more])
    (value,) = measure([17], sigma=1.5 * 2.0**21, source=source).values
    used = len(more) - len(source.left)
    assert used >= 1
    assert value == rounded_by_inversion(17, 1.5 * 2.0**21, [sign, *more[:used]])
    assert (value < 0) == bool(sign)
    assert abs(value) > 9.07 * 1.5 * 2**20


@pytest.mark.parametrize("digits", [DIGITS, DIGITS - 1, DIGITS - 600])
@pytest.mark.parametrize("sign", [0, SIGN])
def test_draw_next_to_zero_leaves_the_sum(digits: int, sign: int) -> None:
    assert noisy(41, ROUND_SIGMA, [sign | digits]) == 41


def test_source_that_gives_nothing_but_zeros_is_refused_rather_than_awaited() -> None:
    class Stuck:
        private = True

        def words(self, n: int) -> NDArray[np.uint64]:
            return np.zeros(n, dtype=np.uint64)

    with pytest.raises(InvalidValueError, match=r"source: .*SystemNoiseSource"):
        measure([1], sigma=1.0, source=Stuck())


def test_few_digits_are_never_trusted() -> None:
    words = np.array([k | s for k in (0, 1, 2, 10, 1000, 10**5) for s in (0, SIGN)], dtype=np.uint64)
    _, decided = gaussian._round_in_doubles(0.0, 2.0**20, words)
    assert not decided.any()


# --- what is released tells nothing but the noisy sum -----------------------------------------------------------------


def test_same_words_on_two_sums_differ_by_rounding_alone() -> None:
    """With a coarse grid: what separates the releases is the sums' distance, rounded, at every draw."""
    sigma, n = 2.0**30, 5000
    first = measure([0] * n, sigma=sigma, source=NotPrivateSeededSource(15))
    second = measure([3_000_001] * n, sigma=sigma, source=NotPrivateSeededSource(15))
    assert first.exponent == second.exponent == 10
    apart = np.array(second.values) - np.array(first.values)
    exact = 3_000_001 / 1024
    assert set(apart.tolist()) == {math.floor(exact), math.ceil(exact)}
    assert abs(apart.mean() - exact) < 0.05  # the fraction is dithered by the noise, not cut off


@given(first=st.integers(-(10**30), 10**30), second=st.integers(-(10**30), 10**30), word=WORD)
def test_fine_grid_releases_the_same_noise_for_every_sum(first: int, second: int, word: int) -> None:
    words = [word, 2**62 + 1, 12345]
    one = measure([first], sigma=3.0, source=PlannedWords(words))
    other = measure([second], sigma=3.0, source=PlannedWords(words))
    assert one.exponent == other.exponent == -19
    assert other.values[0] - one.values[0] == (second - first) << 19


@pytest.mark.parametrize("sigma", SIGMAS)
def test_grid_depends_on_the_scale_alone(sigma: float) -> None:
    for total in SUMS:
        measured = measure([total], sigma=sigma, source=NotPrivateSeededSource(16))
        assert measured.exponent == floor_log2(sigma) - 20
        assert all(type(value) is int for value in measured.values)


def test_opposite_signs_mirror_the_release() -> None:
    words = [int(word) for word in NotPrivateSeededSource(17).words(200)]
    for total in (0, 1, 2**80 + 1):
        up = measure([total] * 200, sigma=1e7, source=PlannedWords([*words, *[9] * 9]))
        down = measure([-total] * 200, sigma=1e7, source=PlannedWords([*(w ^ SIGN for w in words), *[9] * 9]))
        assert down.values == tuple(-value for value in up.values)


# --- what is accepted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sums",
    [
        [5, -3, 100],
        (5, -3, 100),
        np.array([5, -3, 100], dtype=np.int8),
        np.array([5, -3, 100], dtype=np.int64),
        np.array([5, -3, 100], dtype=object),
        [np.int32(5), -3, np.int64(100)],
        np.array([5, 0, -3, 0, 100, 0])[::2],
    ],
)
@pytest.mark.parametrize("sigma", [2.0, 1e9])
def test_integers_of_every_kind_measure_alike(sums: Any, sigma: float) -> None:
    expected = measure([5, -3, 100], sigma=sigma, source=NotPrivateSeededSource(18))
    assert measure(sums, sigma=sigma, source=NotPrivateSeededSource(18)) == expected


@pytest.mark.parametrize("sigma", [2.0, 1e9, 1e19])
def test_unsigned_sums_do_not_wrap_round(sigma: float) -> None:
    big = [2**64 - 1, 2**63, 7]
    for array in (np.array(big, dtype=np.uint64), np.array(big, dtype=object)):
        assert measure(array, sigma=sigma, source=NotPrivateSeededSource(19)) == measure(
            big, sigma=sigma, source=NotPrivateSeededSource(19)
        )


@pytest.mark.parametrize("total", [2**61, 2**62 + 1, 2**63 - 1, -(2**63)])
def test_sum_plus_noise_does_not_wrap_round(total: int) -> None:
    measured = measure(np.array([total] * 50), sigma=ROUND_SIGMA, source=NotPrivateSeededSource(20))
    assert all(abs(value - total) < 10 * 2**20 for value in measured.values)


def test_input_array_is_left_alone() -> None:
    sums = np.array([1, 2, 3])
    measure(sums, sigma=1e9, source=NotPrivateSeededSource(21))
    assert sums.tolist() == [1, 2, 3]


def test_no_cells_are_a_fine_question() -> None:
    for sums in ([], np.array([], dtype=np.int64), np.array([], dtype=object)):
        for sigma in (1.0, 1e9):
            measured = measure(sums, sigma=sigma, source=PlannedWords([]))
            assert measured == Measurement((), floor_log2(sigma) - 20, sigma)
            assert measured.to_floats().shape == (0,)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, -math.inf, True, 3, "1.0", None])
def test_impossible_scale_is_refused_before_a_bit_is_drawn(sigma: Any) -> None:
    with pytest.raises(InvalidValueError, match="sigma: the noise scale must be a positive, finite float; got"):
        measure([1], sigma=sigma, source=PlannedWords([]))


@pytest.mark.parametrize(
    "sums",
    [
        [4321.0],
        [1, 4321.5],
        [True],
        ["4321"],
        [None],
        np.array([4321.5]),
        np.array([True]),
        np.array([[4321]]),
        np.array(4321),
        np.array([4321.5], dtype=object),
        np.array([[4321]], dtype=object),
    ],
)
def test_sums_that_are_not_integers_are_refused_without_being_shown(sums: Any) -> None:
    with pytest.raises(InvalidValueError, match="sums: ") as caught:
        measure(sums, sigma=1.0, source=PlannedWords([]))
    assert "4321" not in str(caught.value)


@pytest.mark.parametrize("setting", ["raise", "ignore"])
def test_callers_floating_point_settings_do_not_matter(setting: Any) -> None:
    expected = [rounded_by_inversion(-3, sigma, [1 << 62]) for sigma in (1e300, 1e9, 1e-300)]
    with np.errstate(all=setting):
        for sigma, value in zip((1e300, 1e9, 1e-300), expected, strict=True):
            measured = measure([-3], sigma=sigma, source=PlannedWords([1 << 62, 0]))
            assert measured.values == (value,)
            measured.to_floats()
        measure([0], sigma=1.0, source=PlannedWords([0, 1 << 40]))
