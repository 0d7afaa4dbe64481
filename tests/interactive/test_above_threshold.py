"""Above-threshold tells above from below, stops after its hits, costs what it says, and keeps its noise to itself."""

from __future__ import annotations

import copy
import itertools
import math
import os
import pickle
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from dpnb.accounting.losses import GDP, PureDP, Repeated
from dpnb.errors import ConversionError, DpnbError, InvalidValueError, MechanismClosed, RequestError
from dpnb.interactive import above_threshold
from dpnb.interactive.above_threshold import (
    MAX_COUNT,
    STEPS,
    AboveThresholdParameters,
    EpsilonSplit,
    LaplaceAboveThreshold,
    LaplaceComparison,
    from_lattice,
    on_lattice,
)
from dpnb.interactive.gaussian_scan import GaussianAboveThreshold, gaussian_margin
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from rationals import fractions
from threads import at_once

ALARM = 1e-7
EPSILONS = fractions(Fraction(1, 10**6), 50, max_denominator=10**6)
HITS = st.integers(1, 1000) | st.sampled_from([10**4, 10**6, MAX_COUNT])


def launched(
    epsilon: Fraction | int = 1, hits: int = 1, *, monotonic: bool = False, values: bool = False, seed: int = 1
) -> LaplaceAboveThreshold:
    source = NotPrivateSeededSource(seed)
    return LaplaceAboveThreshold(Fraction(epsilon), hits, monotonic=monotonic, return_values=values, source=source)


# --- the lattice ------------------------------------------------------------------------------------------------------


@given(
    total=st.integers(-(2**80), 2**80),
    sensitivity=st.integers(1, 2**70),
    threshold=st.fractions(),
    share=fractions(-1, 1),
)
def test_one_unit_moves_a_query_by_at_most_the_lattice_steps(
    total: int, sensitivity: int, threshold: Fraction, share: Fraction
) -> None:
    change = round(share * sensitivity)
    here, there = (on_lattice(s, sensitivity, threshold) for s in (total, total + change))
    assert abs(there - here) <= STEPS
    assert (there - here) * change >= 0  # and never the other way
    assert on_lattice(total + sensitivity, sensitivity, threshold) - here == STEPS


@given(total=st.integers(-(2**80), 2**80), sensitivity=st.integers(1, 2**70), threshold=st.fractions())
def test_a_place_is_the_sum_but_for_one_step(total: int, sensitivity: int, threshold: Fraction) -> None:
    place = on_lattice(total, sensitivity, threshold)
    assert from_lattice(place, sensitivity, threshold) <= total < from_lattice(place + 1, sensitivity, threshold)
    assert (place >= 0) == (total >= threshold)


@pytest.mark.parametrize("bad", [1.0, True, "1", None, np.int64(7), Fraction(7)])
def test_sum_that_is_no_int_is_refused_and_not_quoted(bad: Any) -> None:
    for asked in (launched(), GaussianAboveThreshold(GDP(1), 3, source=NotPrivateSeededSource(1))):
        with pytest.raises(InvalidValueError, match=r"total: must be an int; got \w+; round") as caught:
            asked.ask(bad, sensitivity=1, threshold=Fraction(0))
        assert "7" not in str(caught.value)
        assert asked.n_used == 0


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, Fraction(1), None])
def test_sensitivity_that_is_no_whole_number_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="sensitivity: must be an int of at least 1"):
        launched().ask(0, sensitivity=bad, threshold=Fraction(0))


@pytest.mark.parametrize("bad", [0.5, "1", True, None, math.nan])
def test_threshold_that_is_not_exact_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="threshold: must be an exact number"):
        launched().ask(0, sensitivity=1, threshold=bad)


# --- how epsilon is divided -------------------------------------------------------------------------------------------


@given(epsilon=EPSILONS, hits=HITS, monotonic=st.booleans(), values=st.booleans())
def test_allotment_sums_to_epsilon_exactly(epsilon: Fraction, hits: int, monotonic: bool, values: bool) -> None:
    divided = EpsilonSplit.divide(epsilon, hits, monotonic=monotonic, return_values=values)
    assert divided.threshold + divided.positives + divided.values == divided.epsilon == epsilon
    assert divided.values == (epsilon / 2 if values else 0)
    ratio = ((1 if monotonic else 2) * hits) ** (2 / 3)
    assert divided.threshold > 0
    assert float(divided.positives / divided.threshold) == pytest.approx(ratio, abs=0.0501)


@given(epsilon=EPSILONS, hits=HITS, monotonic=st.booleans(), values=st.booleans(), again=st.booleans())
def test_scales_cost_what_is_allotted(epsilon: Fraction, hits: int, monotonic: bool, values: bool, again: bool) -> None:
    """As in the proof: each rho shifts by D, c of nu by 2D (by D if monotonic), c of zeta by D."""
    thresholds = hits if again else 1
    terms = AboveThresholdParameters(epsilon, hits, monotonic, values, thresholds)
    moved = STEPS if monotonic else 2 * STEPS
    cost = thresholds * STEPS / terms.threshold_scale + hits * moved / terms.query_scale
    if terms.value_scale is not None:
        cost += hits * STEPS / terms.value_scale
    assert cost == epsilon
    assert (terms.value_scale is None) is (not values)
    assert terms.loss.epsilon == epsilon
    assert terms.loss.count == thresholds


def test_number_of_thresholds_is_one_or_that_of_the_positives() -> None:
    assert AboveThresholdParameters(Fraction(1), 4, thresholds=4).loss == Repeated(PureDP("0.25"), 4)
    with pytest.raises(InvalidValueError, match="thresholds"):
        AboveThresholdParameters(Fraction(1), 4, thresholds=2)


def test_a_threshold_is_drawn_again_after_each_positive_and_never_serves_twice() -> None:
    """Also after an interrupt just behind a positive answer: the number is compared before each answer."""
    source = NotPrivateSeededSource(4)
    machine = LaplaceAboveThreshold(Fraction(100), 3, monotonic=False, return_values=False, source=source, thresholds=3)
    seen = []
    for total in (-9, 9, -9, 9, -9, 9):
        machine.ask(total, sensitivity=1, threshold=Fraction(0))
        seen.append(machine._hidden)
    assert [number for number, _ in seen] == [0, 0, 1, 1, 2, 2]
    assert len(set(seen)) == 3
    assert machine.n_remaining == 0
    with pytest.raises(MechanismClosed):
        machine.ask(-9, sensitivity=1, threshold=Fraction(0))
    one = launched(100, 3)
    for total in (9, 9, 9):
        one.ask(total, sensitivity=1, threshold=Fraction(0))
    assert one._hidden[0] == 0


def test_one_hit_is_divided_simply() -> None:
    assert EpsilonSplit.divide(1, 1) == EpsilonSplit(Fraction(5, 13), Fraction(8, 13), Fraction(0))
    assert EpsilonSplit.divide(0.3, 1, monotonic=True, return_values=True) == EpsilonSplit(
        Fraction(3, 40), Fraction(3, 40), Fraction(3, 20)
    )


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "x", None])
def test_epsilon_that_is_not_positive_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="epsilon"):
        AboveThresholdParameters(bad, 1)


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, None, MAX_COUNT + 1])
def test_number_of_hits_that_is_no_whole_number_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"max_positives: must be an integer from 1 to 1,000,000,000"):
        AboveThresholdParameters(Fraction(1), bad)


# --- the exact probabilities ------------------------------------------------------------------------------------------

Transcript = tuple[bool, ...]
Floats = NDArray[np.float64]


def at_least(scale: Fraction, x: NDArray[np.int64]) -> Floats:
    """P(X >= x), with full relative precision on both sides."""
    t = float(scale)
    q = math.exp(-1 / t)
    return np.where(x > 0, np.exp(-np.abs(x) / t) / (1 + q), 1 - np.exp(-(np.abs(x) + 1) / t) / (1 + q))


def lattice(rho: Fraction) -> NDArray[np.int64]:
    """The values of r in the sum of this module's proof; what is left out of it is below exp(-90)."""
    reach = math.ceil(90 * rho)
    return np.arange(-reach, reach + 1)


def mass(rho: Fraction) -> Floats:
    """P(rho = r)."""
    return np.exp(-np.abs(lattice(rho)) / float(rho)) * math.tanh(1 / (2 * float(rho)))


def of_answer(places: NDArray[np.int64], above: bool, rho: Fraction, nu: Fraction) -> Floats:
    """Of one answer, at each place and r."""
    x = lattice(rho) - places[:, None]
    return at_least(nu, x if above else 1 - x)  # P(nu < x) is P(nu >= 1 - x), by symmetry


def probability(places: Sequence[int], answers: Transcript, rho: Fraction, nu: Fraction) -> float:
    """Of these answers, by the sum over r."""
    total = mass(rho)
    for place, above in zip(places, answers, strict=False):
        total = total * of_answer(np.array([place]), above, rho, nu)[0]
    return float(total.sum())


def probabilities(
    places: NDArray[np.int64], queries: int, answers: list[Transcript], rho: Fraction, nu: Fraction
) -> Floats:
    """Of each of the answers (axis 1), if every query is at every one of the places (axis 0)."""
    factors = {above: of_answer(places, above, rho, nu) for above in (False, True)}
    columns = []
    for transcript in answers:
        total = mass(rho)[None]
        for above in transcript:
            total = (total[:, None] * factors[above]).reshape(-1, total.shape[1])
        # Queries after the last answer are not asked, wherever they are.
        columns.append(np.repeat(total.sum(axis=1), len(places) ** (queries - len(transcript))))
    return np.stack(columns, axis=1)


def transcripts(queries: int, hits: int) -> list[Transcript]:
    """What can be answered: it ends with the last hit."""
    found = []
    for answers in itertools.product((False, True), repeat=queries):
        ends = list(itertools.accumulate(answers))
        found.append(answers[: ends.index(hits) + 1] if hits in ends else answers)
    return sorted(set(found))


def worst(queries: int, rho: Fraction, nu: Fraction, *, hits: int, steps: int, monotonic: bool) -> tuple[float, float]:
    """Largest log-ratio of a transcript's probabilities over all neighbours, and how far they are from summing to 1."""
    places = np.arange(-steps, steps + 1)
    answers = transcripts(queries, hits)
    table = probabilities(places, queries, answers, rho, nu)
    moved = np.array(list(itertools.product(places, repeat=queries)))
    change = moved[:, None, :] - moved[None, :, :]
    near = (np.abs(change) <= steps).all(axis=2)
    if monotonic:
        near &= (change >= 0).all(axis=2) | (change <= 0).all(axis=2)
    logs = np.log(table)
    largest = max(
        float(np.where(near, logs[:, None, k] - logs[None, :, k], -np.inf).max()) for k in range(len(answers))
    )
    return largest, float(np.abs(table.sum(axis=1) - 1).max())


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("epsilon", "hits", "queries"), [("1/2", 1, 4), (3, 1, 4), (2, 2, 4), (4, 3, 4)])
def test_no_answers_are_likelier_by_more_than_epsilon_for_any_neighbours(
    monkeypatch: pytest.MonkeyPatch, epsilon: int | str, hits: int, queries: int, monotonic: bool
) -> None:
    """All places on a lattice of two steps, all their neighbours, all answers; exact but for 1e-9 of rounding."""
    monkeypatch.setattr(above_threshold, "STEPS", 2)
    terms = AboveThresholdParameters(Fraction(epsilon), hits, monotonic)
    scales = terms.threshold_scale, terms.query_scale
    largest, missing = worst(queries, *scales, hits=hits, steps=2, monotonic=monotonic)
    assert missing < 1e-9
    assert largest <= Fraction(epsilon) * (1 + 1e-9)


def paid(
    terms: AboveThresholdParameters, rho: Fraction, nu: Fraction, moves: tuple[int, int], below: int = 60
) -> float:
    """Log-ratio for many queries that are below and move up, then hits of far lower ones that move as told."""
    rise, fall = (move * above_threshold.STEPS for move in moves)
    low = -4 * above_threshold.STEPS
    answers = (False,) * below + (True,) * terms.max_positives
    here = [0] * below + [low] * terms.max_positives
    there = [rise] * below + [low + fall] * terms.max_positives
    return math.log(probability(here, answers, rho, nu) / probability(there, answers, rho, nu))


@pytest.mark.parametrize(("monotonic", "moves"), [(False, (1, -1)), (True, (1, 0))])
@pytest.mark.parametrize(("epsilon", "hits"), [(1, 1), (4, 1), (2, 3)])
def test_epsilon_is_nearly_reached(
    monkeypatch: pytest.MonkeyPatch, epsilon: int, hits: int, monotonic: bool, moves: tuple[int, int]
) -> None:
    monkeypatch.setattr(above_threshold, "STEPS", 16)
    terms = AboveThresholdParameters(Fraction(epsilon), hits, monotonic)
    ratio = paid(terms, terms.threshold_scale, terms.query_scale, moves)
    assert 0.8 * epsilon < ratio <= epsilon * (1 + 1e-9)


def test_control_smaller_noise_exceeds_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Monotone noise for queries that move both ways, noise that forgets the hits, a threshold's noise too small."""
    monkeypatch.setattr(above_threshold, "STEPS", 16)
    terms = AboveThresholdParameters(Fraction(2), 3, monotonic=True)
    assert paid(terms, terms.threshold_scale, terms.query_scale, (1, -1)) > 2
    terms = AboveThresholdParameters(Fraction(2), 3)
    assert paid(terms, terms.threshold_scale, terms.query_scale / 3, (1, -1)) > 2
    assert paid(terms, terms.threshold_scale / 2, terms.query_scale, (1, -1)) > 2


def test_control_one_threshold_is_not_one_mechanism_for_each_positive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers up to the first positive one lose more than epsilon/c; with a threshold for each they do not."""
    monkeypatch.setattr(above_threshold, "STEPS", 16)
    for thresholds, exceeds in ((1, True), (5, False)):
        terms = AboveThresholdParameters(Fraction(5), 5, thresholds=thresholds)
        here, there = [0] * 60 + [-64], [16] * 60 + [-80]
        said = (False,) * 60 + (True,)
        scales = terms.threshold_scale, terms.query_scale
        ratio = math.log(probability(here, said, *scales) / probability(there, said, *scales))
        assert (ratio > 1 + 1e-9) is exceeds
        assert ratio > 0.8


def test_control_a_positive_without_a_new_threshold_exceeds_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of five scans, but one threshold for all five answers: more than epsilon in total."""
    monkeypatch.setattr(above_threshold, "STEPS", 16)
    terms = AboveThresholdParameters(Fraction(1), 1)
    here, there = [0] * 60 + [-64] * 5, [16] * 60 + [-80] * 5
    said = (False,) * 60 + (True,) * 5
    scales = terms.threshold_scale, terms.query_scale
    assert math.log(probability(here, said, *scales) / probability(there, said, *scales)) > 3


@pytest.mark.statistical
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("thresholds", [1, 2])
def test_answers_have_the_exact_probabilities(
    monkeypatch: pytest.MonkeyPatch, monotonic: bool, values: bool, thresholds: int
) -> None:
    """False alarm 1e-7 each.  So the code does what the test above proves of the formula."""
    monkeypatch.setattr(above_threshold, "STEPS", 2)
    places, source, runs = (-3, 2, 0, -1), NotPrivateSeededSource(20260410), 8000
    terms = AboveThresholdParameters(Fraction(3), 2, monotonic, values, thresholds)
    seen: Counter[Transcript] = Counter()
    for _ in range(runs):
        machine = LaplaceAboveThreshold(
            terms.epsilon, 2, monotonic=monotonic, return_values=values, source=source, thresholds=thresholds
        )
        said: Transcript = ()
        for place in places:
            if machine.n_remaining:
                said = (*said, machine.ask(place, sensitivity=2, threshold=Fraction(0)).above)
        seen[said] += 1
    kinds = transcripts(4, 2)

    def likelihood(said: Transcript) -> float:
        """Of the answers of one scan, or of two in a row, the first of which ends with its positive answer."""
        scales = terms.threshold_scale, terms.query_scale
        end = said.index(True) + 1 if thresholds > 1 and True in said else len(said)
        rest = probability(places[end:], said[end:], *scales) if end < len(said) else 1.0
        return probability(places, said[:end], *scales) * rest

    expected = [runs * likelihood(said) for said in kinds]
    assert set(seen) <= set(kinds)
    assert stats.chisquare([seen[said] for said in kinds], expected).pvalue > ALARM


@pytest.mark.statistical
def test_a_value_has_noise_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarm 1e-7.  The comparison's own noise, which lifted a far query above, would lie high."""
    monkeypatch.setattr(above_threshold, "STEPS", 2)
    source, terms = NotPrivateSeededSource(20260411), AboveThresholdParameters(Fraction(2), 1, return_values=True)
    found: list[int] = []
    while len(found) < 3000:
        machine = LaplaceAboveThreshold(terms.epsilon, 1, monotonic=False, return_values=True, source=source)
        hit = machine.ask(-12, sensitivity=2, threshold=Fraction(0))
        found += [hit.value + 12] if hit.value is not None else []
    assert terms.value_scale is not None
    q = math.exp(-1 / terms.value_scale)
    inner = range(-8, 9)
    middle = [(1 - q) / (1 + q) * q ** abs(x) for x in inner]
    outer = (1 - sum(middle)) / 2
    counted = Counter(found)
    observed = [sum(x < -8 for x in found), *(counted[x] for x in inner), sum(x > 8 for x in found)]
    assert stats.chisquare(observed, [len(found) * p for p in (outer, *middle, outer)]).pvalue > ALARM


# --- how far an answer is reliable ------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("monotonic", [False, True])
def test_answers_beyond_the_margin_are_all_right(monotonic: bool) -> None:
    """Two hundred runs of twenty queries each at the margin: false alarm 200 * 1e-9."""
    sensitivity, threshold = 7, Fraction(1001, 3)
    terms = AboveThresholdParameters(Fraction(1), 10, monotonic)
    away = terms.margin(20, 1e-9) * sensitivity
    high, low = math.ceil(threshold + away), math.floor(threshold - away)
    for seed in range(200):
        machine = launched(1, 10, monotonic=monotonic, seed=seed)
        for _ in range(10):
            assert machine.ask(low, sensitivity=sensitivity, threshold=threshold) == LaplaceComparison(False)
            assert machine.ask(high, sensitivity=sensitivity, threshold=threshold) == LaplaceComparison(True)
        assert machine.n_remaining == 0


@pytest.mark.statistical
def test_answers_at_the_margin_are_wrong_as_rarely_as_stated_and_no_rarer_by_much() -> None:
    """False alarm 1e-7.  Of half of the runs at half of the margin something is wrong."""
    terms, runs, wrong = AboveThresholdParameters(Fraction(1), 3), 1500, Counter[int]()
    for part in (1, 2):
        place = -terms.margin_steps(10, Fraction(1, 5)) // part - 1
        for seed in range(runs):
            machine = launched(1, 3, seed=seed)
            wrong[part] += any(
                machine.n_remaining and machine.ask(place, sensitivity=STEPS, threshold=Fraction(0)).above
                for _ in range(10)
            )
    assert stats.binomtest(wrong[1], runs, 0.2, alternative="greater").pvalue > ALARM
    assert wrong[1] > 0.02 * runs
    assert wrong[2] > 0.2 * runs


@given(
    epsilon=EPSILONS,
    hits=st.integers(1, 50),
    queries=st.integers(1, 10**6),
    beta=st.sampled_from([0.9, 0.05, 1e-9, 1e-300]),
)
def test_margin_is_near_the_textbooks(epsilon: Fraction, hits: int, queries: int, beta: float) -> None:
    """Dwork and Roth's 8 (log k + log(2/beta))/epsilon for one hit, with room for the better division."""
    terms = AboveThresholdParameters(epsilon, hits)
    assert terms.margin(queries, beta) == Fraction(terms.margin_steps(queries, beta), STEPS)
    assert terms.margin(queries, beta) <= 8 * hits * (math.log(queries) + math.log(2 / beta)) / epsilon + 1
    assert AboveThresholdParameters(epsilon, hits, monotonic=True).margin(queries, beta) <= terms.margin(queries, beta)
    assert terms.margin(queries + 1, beta) >= terms.margin(queries, beta)


@pytest.mark.parametrize("bad", [0, 1, 2, -1, "x", None])
def test_beta_and_alpha_that_are_no_probability_are_refused(bad: Any) -> None:
    terms = AboveThresholdParameters(Fraction(1), 1, return_values=True)
    with pytest.raises(InvalidValueError, match="beta"):
        terms.margin_steps(10, bad)
    with pytest.raises(InvalidValueError, match="alpha"):
        terms.value_half_width(bad)
    with pytest.raises(InvalidValueError, match="beta"):
        gaussian_margin(GDP(1), 5, bad)


@pytest.mark.parametrize("bad", [0, 1.5, True, None])
def test_number_of_queries_that_is_no_whole_number_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="queries: must be an integer"):
        AboveThresholdParameters(Fraction(1), 1).margin_steps(bad, 0.05)
    with pytest.raises(InvalidValueError, match="queries: must be an integer"):
        GaussianAboveThreshold(GDP(1), bad, source=NotPrivateSeededSource(1))


# --- hits and values --------------------------------------------------------------------------------------------------


def test_it_is_used_up_after_its_hits_and_not_before() -> None:
    machine = launched(5, 3)
    for hits in range(3):
        assert (machine.n_used, machine.n_remaining) == (hits, 3 - hits)
        for _ in range(50):
            assert machine.ask(-1000, sensitivity=1, threshold=Fraction(0)) == LaplaceComparison(False, None)
        assert machine.ask(1000, sensitivity=1, threshold=Fraction(0)) == LaplaceComparison(True, None)
    assert (machine.n_used, machine.n_remaining) == (3, 0)
    for total in (-1000, 1000):
        with pytest.raises(
            MechanismClosed, match=r"LaplaceAboveThreshold: is exhausted, all 3 positive answers.*launch another"
        ):
            machine.ask(total, sensitivity=1, threshold=Fraction(0))
    assert machine.n_used == 3


def test_hits_come_with_values_in_the_units_of_the_sum() -> None:
    machine = launched(5, 2, values=True, seed=3)
    sensitivity, threshold = 30, Fraction(100_001, 7)
    assert machine.ask(-(10**6), sensitivity=sensitivity, threshold=threshold).value is None
    for total in (10**6, 10**7):
        hit = machine.ask(total, sensitivity=sensitivity, threshold=threshold)
        assert hit.above
        assert hit.value is not None
        away = abs(from_lattice(hit.value, sensitivity, threshold) - total)
        assert away <= machine.terms.value_half_width(1e-9) * sensitivity
    assert 2 < machine.terms.value_half_width(0.05) < 3  # c/e3 log(1/alpha) = 2.397


@pytest.mark.statistical
def test_values_miss_as_often_as_stated() -> None:
    """False alarm 1e-7.  Also for a query that is above by luck."""
    sensitivity, threshold, runs, missed = 10, Fraction(1, 3), 0, 0
    width = AboveThresholdParameters(Fraction(2), 1, return_values=True).value_half_width("0.2") * sensitivity
    for seed in range(4000):
        hit = launched(2, 1, values=True, seed=seed).ask(-7, sensitivity=sensitivity, threshold=threshold)
        if hit.value is not None:
            runs += 1
            missed += abs(from_lattice(hit.value, sensitivity, threshold) + 7) > width
    assert runs > 1000
    assert stats.binomtest(missed, runs, 0.2).pvalue > ALARM


def test_values_that_were_not_asked_for_have_no_width() -> None:
    with pytest.raises(RequestError, match="value_half_width: needs values"):
        AboveThresholdParameters(Fraction(1), 1).value_half_width(0.05)


def test_the_thresholds_noise_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Fraction] = []

    def recording(scale: Fraction, source: Any) -> int:
        del source
        drawn.append(scale)
        return 0

    monkeypatch.setattr(above_threshold, "discrete_laplace", recording)
    machine = launched(2, 3, values=True)
    terms = machine.terms
    assert drawn == [terms.threshold_scale]
    for total in (-1, 1, -1, 0, 5):  # at the threshold is above
        machine.ask(total, sensitivity=1, threshold=Fraction(0))
    below, above = [terms.query_scale], [terms.query_scale, terms.value_scale]
    assert drawn[1:] == [*below, *above, *below, *above, *above]


@pytest.mark.waits
def test_many_threads_get_no_more_hits_than_there_are() -> None:
    machine = launched(5, 40)
    hits: list[bool] = []

    def ask() -> None:
        for _ in range(20):
            try:
                hits.append(machine.ask(10**6, sensitivity=1, threshold=Fraction(0)).above)
            except MechanismClosed:
                return

    assert at_once(*[ask] * 8) == []
    assert len(hits) == sum(hits) == machine.n_used == 40


# --- what stays hidden ------------------------------------------------------------------------------------------------


def test_nothing_public_holds_the_noise() -> None:
    machine = launched(Fraction(1, 3), 2, values=True)
    _, hidden = machine._hidden
    assert abs(hidden) > 10  # its scale is in the millions
    public = {name: getattr(machine, name) for name in dir(machine) if not name.startswith("_")}
    assert set(public) == {"ask", "n_remaining", "n_used", "terms"}
    expected = "LaplaceAboveThreshold(epsilon=1/3, max_positives=2, monotonic=False, return_values=True, n_used=0)"
    assert repr(machine) == str(machine) == expected
    assert str(abs(hidden)) not in repr([public["terms"], public["n_used"], public["n_remaining"]]) + repr(machine)
    with pytest.raises(TypeError):
        vars(machine)
    for name in public:
        with pytest.raises(AttributeError):
            setattr(machine, name, 0)
    with pytest.raises(AttributeError):
        machine.more = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("machine", [launched(), GaussianAboveThreshold(GDP(1), 3, source=NotPrivateSeededSource(1))])
def test_copies_are_refused(machine: Any) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be copied or pickled: its noise is secret"):
            pickle.dumps(machine, protocol)
    for refused in (copy.copy, copy.deepcopy, lambda it: copy.deepcopy([it]), lambda it: it.__getstate__()):
        with pytest.raises(TypeError, match=r"cannot be copied or pickled.*launch another"):
            refused(machine)


@pytest.mark.parametrize("machine", [launched(), GaussianAboveThreshold(GDP(1), 3, source=NotPrivateSeededSource(1))])
def test_a_fork_of_the_process_gets_no_answers(monkeypatch: pytest.MonkeyPatch, machine: Any) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(MechanismClosed, match="must be used in the process that launched it"):
        machine.ask(0, sensitivity=1, threshold=Fraction(0))
    assert machine.n_used == 0


# --- the Gaussian scan ------------------------------------------------------------------------------------------------


def test_a_scan_measures_each_query_with_its_share_of_the_loss() -> None:
    loss, queries = GDP("0.6"), 9
    scan = GaussianAboveThreshold(loss, queries, source=NotPrivateSeededSource(12))
    same = NotPrivateSeededSource(12)
    spent = Fraction(0)
    for k in range(queries):
        total, sensitivity, threshold = 1000 * k, k + 1, Fraction(7001, 2)
        reading = scan.ask(total, sensitivity=sensitivity, threshold=threshold)
        sigma = sigma_for(sensitivity**2 * queries, loss)
        assert reading.measurement == measure([total], sigma=sigma, source=same)
        assert float(reading.value) == reading.measurement.to_floats()[0]
        assert reading.above is (reading.value >= threshold)
        spent += Fraction(sensitivity**2) / Fraction(sigma) ** 2
        assert (scan.n_used, scan.n_remaining) == (k + 1, queries - k - 1)
    assert spent <= loss.mu_squared
    assert float(spent) == pytest.approx(float(loss.mu_squared))


def test_a_scan_is_used_up_after_its_queries() -> None:
    scan = GaussianAboveThreshold(GDP(1), 2, source=NotPrivateSeededSource(1))
    assert (scan.loss, scan.max_queries) == (GDP(1), 2)
    for total in (0, 10**6):
        assert scan.ask(total, sensitivity=1, threshold=Fraction(1000)).above is (total > 0)
    with pytest.raises(
        MechanismClosed, match=r"GaussianAboveThreshold: is exhausted, all 2 queries were answered; launch another"
    ):
        scan.ask(0, sensitivity=1, threshold=Fraction(0))
    assert repr(scan) == "GaussianAboveThreshold(loss=GDP(mu=1.0), max_queries=2, n_used=2)"


@pytest.mark.statistical
def test_a_scans_answers_beyond_the_margin_are_right_as_often_as_stated() -> None:
    """False alarm 1e-7.  The normal union bound is nearly tight."""
    source, runs, wrong = NotPrivateSeededSource(20260412), 400, 0
    for _ in range(runs):
        scan = GaussianAboveThreshold(GDP("0.5"), 10, source=source)
        total = math.floor(-gaussian_margin(scan.loss, scan.max_queries, 0.2) * 10**6)
        wrong += any(scan.ask(total, sensitivity=10**6, threshold=Fraction(0)).above for _ in range(10))
    assert stats.binomtest(wrong, runs, 0.2, alternative="greater").pvalue > ALARM
    assert wrong > 0.1 * runs


@pytest.mark.parametrize("bad", [GDP(0), PureDP(1), None])
def test_a_scan_needs_a_loss_in_mu(bad: Any) -> None:
    with pytest.raises(DpnbError) as caught:
        GaussianAboveThreshold(bad, 3, source=NotPrivateSeededSource(1))
    assert isinstance(caught.value, InvalidValueError | ConversionError)
