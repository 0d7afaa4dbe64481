"""Both selections have exactly their distributions, and their losses are what is stated: by enumeration."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpnb.accounting.losses import GDP, BoundedRange, PureDP
from dpnb.errors import InvalidValueError
from dpnb.mechanisms import ExponentialMechanism, NotPrivateSeededSource, PermuteAndFlip
from dpnb.mechanisms.selection import LargestCounts, choice_of, epsilon_for_shortfall
from mechanisms.oracles import Prefetched

ALARM = 1e-7
ROUNDING = 1e-9
"""More than what doubles lose in the enumeration."""

Winners = tuple[int, ...]


def one_round(scores: tuple[int, ...], rate: float) -> list[float]:
    """The probabilities of one round, from all outcomes of the coins: a winner is uniform among the heads."""
    heads = [math.exp(-rate * (max(scores) - score)) for score in scores]
    found = [0.0] * len(scores)
    for outcome in itertools.product((False, True), repeat=len(scores)):
        probability = math.prod(p if up else 1 - p for p, up in zip(heads, outcome, strict=True))
        for index, up in enumerate(outcome):
            found[index] += probability / sum(outcome) if up else 0.0
    return found


def by_permutations(scores: tuple[int, ...], rate: float) -> list[float]:
    """The same from the paper's algorithm: coins in random order, until the first heads."""
    heads = [math.exp(-rate * (max(scores) - score)) for score in scores]
    found = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        tails = 1.0
        for index in order:
            found[index] += tails * heads[index] / len(orders)
            tails *= 1 - heads[index]
    return found


def exponential(scores: tuple[int, ...], rate: float) -> list[float]:
    """The probabilities of one round of the exponential mechanism."""
    weights = [math.exp(-rate * (max(scores) - score)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def gumbel(scores: tuple[int, ...], winners: int, rate: float) -> dict[Winners, float]:
    """The law of the order of the scores, each with a Gumbel variable: of sequences of exponential arrivals."""
    weights = [math.exp(rate * (score - max(scores))) for score in scores]
    found = {}
    for order in itertools.permutations(range(len(scores)), winners):
        rest = [index for index in range(len(scores)) if index not in order]
        found[order] = 1.0
        for place, one in enumerate(order):
            found[order] *= weights[one] / sum(weights[index] for index in (*order[place:], *rest))
    return found


def ranking(
    scores: tuple[int, ...], rounds: int, rate: float, law: Callable[..., list[float]] = one_round
) -> dict[Winners, float]:
    """The probability of each ordered choice."""
    chosen: dict[Winners, float] = {(): 1.0}
    for _ in range(rounds):
        after: dict[Winners, float] = {}
        for winners, probability in chosen.items():
            left = [index for index in range(len(scores)) if index not in winners]
            for index, share in zip(left, law(tuple(scores[i] for i in left), rate), strict=True):
                after[(*winners, index)] = probability * share
        chosen = after
    return chosen


def worst_ratio(one: dict[Winners, float], other: dict[Winners, float]) -> float:
    return max(abs(math.log(one[key] / other[key])) for key in one)


# --- the loss ---------------------------------------------------------------------------------------------------------

SCORES = st.lists(st.integers(0, 12), min_size=2, max_size=5)


@given(SCORES, st.data())
def test_coins_at_once_give_the_distribution_of_the_paper(scores: list[int], data: st.DataObject) -> None:
    rate = data.draw(st.floats(0.01, 3))
    assert one_round(tuple(scores), rate) == pytest.approx(by_permutations(tuple(scores), rate), abs=1e-12)


@given(SCORES, st.integers(1, 4), st.sampled_from([1, 2, 5]), st.floats(0.05, 4), st.data())
def test_adding_a_unit_changes_no_probability_by_more_than_epsilon(
    scores: list[int], winners: int, sensitivity: int, epsilon: float, data: st.DataObject
) -> None:
    choice = PermuteAndFlip(len(scores), min(winners, len(scores)), Fraction(epsilon), sensitivity)
    added = [data.draw(st.integers(0, sensitivity)) for _ in scores]
    neighbour = tuple(score + more for score, more in zip(scores, added, strict=True))
    one, other = (ranking(table, choice.rounds, float(choice.rate)) for table in (tuple(scores), neighbour))
    assert worst_ratio(one, other) <= epsilon + ROUNDING
    assert (choice.loss.epsilon, choice.loss.count) == (Fraction(epsilon), choice.rounds)


def neighbours(scores: tuple[int, ...], least: int, most: int) -> list[tuple[int, ...]]:
    return [
        tuple(score + more for score, more in zip(scores, added, strict=True))
        for added in itertools.product(range(least, most + 1), repeat=len(scores))
    ]


SMALL = [scores for size in (2, 3) for scores in itertools.product(range(4), repeat=size)]


def worst_of_all(rate: float, least: int, most: int) -> float:
    """The largest log ratio of one round over all pairs of small tables."""
    return max(
        worst_ratio(ranking(scores, 1, rate), ranking(other, 1, rate))
        for scores in SMALL
        for other in neighbours(scores, least, most)
    )


def test_the_stated_epsilon_is_reached_and_not_exceeded() -> None:
    choice = PermuteAndFlip(3, 1, Fraction(1, 2), 2)
    found = worst_of_all(float(choice.rate), 0, 2)
    assert 0.5 - ROUNDING <= found <= 0.5 + ROUNDING


@pytest.mark.parametrize(
    ("rate", "least", "most"),
    [
        pytest.param(0.5, 0, 2, id="the rows of a unit counted as one"),
        pytest.param(0.25, -2, 2, id="scores that change in both directions"),
        pytest.param(0.5, 0, 2, id="twice the rate"),
    ],
)
def test_control_a_wrong_constant_loses_more_than_is_stated(rate: float, least: int, most: int) -> None:
    """epsilon = 1/2, and a unit with two rows: the right rate is 1/4."""
    assert worst_of_all(rate, least, most) > 0.75


def test_control_rounds_that_do_not_share_epsilon_lose_more_than_is_stated() -> None:
    scores = (3, 2, 0)
    found = max(worst_ratio(ranking(scores, 2, 0.5), ranking(other, 2, 0.5)) for other in neighbours(scores, 0, 1))
    assert found > 0.6
    shared = PermuteAndFlip(3, 2, Fraction(1, 2))
    rate = float(shared.rate)
    assert all(
        worst_ratio(ranking(scores, 2, rate), ranking(other, 2, rate)) <= 0.5 + ROUNDING
        for other in neighbours(scores, 0, 1)
    )


def range_of(one: dict[Winners, float], other: dict[Winners, float]) -> float:
    """The length of the shortest interval with the logarithms of all ratios."""
    ratios = [math.log(one[key] / other[key]) for key in one]
    return max(ratios) - min(ratios)


@given(SCORES, st.sampled_from([1, 2, 5]), st.floats(0.05, 4), st.data())
def test_a_round_of_the_exponential_mechanism_has_the_stated_range(
    scores: list[int], sensitivity: int, epsilon: float, data: st.DataObject
) -> None:
    choice = ExponentialMechanism(len(scores), 1, Fraction(epsilon), sensitivity)
    added = [data.draw(st.integers(0, sensitivity)) for _ in scores]
    neighbour = tuple(score + more for score, more in zip(scores, added, strict=True))
    laws = [ranking(table, 1, float(choice.rate), exponential) for table in (tuple(scores), neighbour)]
    assert range_of(*laws) <= epsilon + ROUNDING
    assert choice.loss == BoundedRange(Fraction(epsilon))


def test_the_stated_range_is_reached_and_is_half_of_what_permute_and_flip_has_at_that_rate() -> None:
    rate = float(ExponentialMechanism(3, 1, Fraction(1, 2), 2).rate)
    laws = {
        law: max(
            range_of(ranking(scores, 1, rate, law), ranking(other, 1, rate, law))
            for scores in SMALL
            for other in neighbours(scores, 0, 2)
        )
        for law in (exponential, one_round)
    }
    assert laws[exponential] == pytest.approx(0.5)
    assert laws[one_round] > 0.7  # control: its loss must not be counted by a range of a C


def test_control_scores_that_rise_and_fall_have_a_larger_range() -> None:
    rate = float(ExponentialMechanism(3, 1, Fraction(1, 2)).rate)
    worst = max(
        range_of(ranking(scores, 1, rate, exponential), ranking(other, 1, rate, exponential))
        for scores in SMALL
        for other in neighbours(scores, -1, 1)
    )
    assert worst == pytest.approx(1)


@given(SCORES, st.integers(1, 4), st.floats(0.05, 2))
def test_peeling_is_one_gumbel_variable_for_each_count(scores: list[int], winners: int, rate: float) -> None:
    winners = min(winners, len(scores))
    peeled = ranking(tuple(scores), winners, rate, exponential)
    assert peeled == pytest.approx(gumbel(tuple(scores), winners, rate), abs=ROUNDING)


def test_the_loss_of_a_row_names_its_mechanism() -> None:
    for kind in (PermuteAndFlip, ExponentialMechanism):
        for winners in (1, 3):
            choice: LargestCounts = kind(4, winners, Fraction(1, 3), 2)
            assert choice_of(choice.loss, 4, winners, 2) == choice
    old = choice_of(PureDP(1), 4, 3, 2)  # a selection of three that was counted as one loss
    assert old == PermuteAndFlip(4, 3, Fraction(1), 2)
    with pytest.raises(InvalidValueError):
        choice_of(GDP(1), 4, 3, 2)


# --- the draws --------------------------------------------------------------------------------------------------------

CASES = [
    ((3, 3, 0), 1, Fraction(1), 1),
    ((10, 8, 7, 2), 2, Fraction(3, 2), 1),
    ((0, 0, 0), 3, Fraction(1, 3), 2),
    ((40, 10, 0), 2, Fraction(7, 10), 5),
]


@cache
def drawn(choice: LargestCounts, counts: tuple[int, ...], seed: int, draws: int) -> Counter[Winners]:
    """How often winners are drawn: a control asks for the draws of a test."""
    source = Prefetched(seed)
    return Counter(choice.draw(counts, source) for _ in range(draws))


def agrees(choice: LargestCounts, counts: tuple[int, ...], rate: float, seed: int, draws: int = 20_000) -> bool:
    """Chi-square at `ALARM`; choices that are expected fewer than ten times are counted together."""
    seen = drawn(choice, counts, seed, draws)
    law = exponential if isinstance(choice, ExponentialMechanism) else one_round
    expected = ranking(counts, choice.rounds, rate, law)
    observed, wanted = [0.0], [0.0]
    for winners, probability in expected.items():
        last = tuple(index for index in range(len(counts)) if index not in winners)
        times = seen[(*winners, *last) if choice.winners == choice.candidates else winners]
        if probability * draws < 10:
            observed[0], wanted[0] = observed[0] + times, wanted[0] + probability * draws
        else:
            observed, wanted = [*observed, times], [*wanted, probability * draws]
    if wanted[0] < 10:
        observed = [*observed[1:-1], observed[-1] + observed[0]]
        wanted = [*wanted[1:-1], wanted[-1] + wanted[0]]
    scaled = np.array(wanted) * sum(observed) / sum(wanted)
    return bool(stats.chisquare(observed, scaled).pvalue > ALARM)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
@pytest.mark.parametrize(("counts", "winners", "epsilon", "sensitivity"), CASES)
def test_draws_have_the_enumerated_probabilities(
    kind: type[LargestCounts], counts: tuple[int, ...], winners: int, epsilon: Fraction, sensitivity: int
) -> None:
    """False alarm 1e-7 each."""
    choice = kind(len(counts), winners, epsilon, sensitivity)
    assert agrees(choice, counts, float(choice.rate), 20260811)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMechanism])
def test_control_another_rate_is_seen(kind: type[LargestCounts]) -> None:
    counts, winners, epsilon, sensitivity = CASES[1]
    choice = kind(len(counts), winners, epsilon, sensitivity)
    assert not agrees(choice, counts, float(choice.rate) * 1.2, 20260811)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6), st.integers(1, 6), st.integers(0, 2**32))
def test_every_table_has_that_many_different_winners(counts: list[int], winners: int, seed: int) -> None:
    for kind in (PermuteAndFlip, ExponentialMechanism):
        choice = kind(len(counts), min(winners, len(counts)), Fraction(1))
        drawn = choice.draw(counts, NotPrivateSeededSource(seed))
        assert len(set(drawn)) == len(drawn) == choice.winners
        assert set(drawn) <= set(range(len(counts)))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**30), Fraction(10**30)])
def test_extreme_epsilons_are_drawn(epsilon: Fraction) -> None:
    for kind in (PermuteAndFlip, ExponentialMechanism):
        choice = kind(3, 1, epsilon)
        drawn = {choice.draw([0, 5, 10**15], NotPrivateSeededSource(seed)) for seed in range(40)}
        assert drawn == ({(2,)} if epsilon > 1 else {(0,), (1,), (2,)})


def test_the_number_of_coins_hardly_depends_on_the_counts() -> None:
    """Words that are drawn, for counts that are all equal and for one that is far above the others."""

    class Counting:
        private, drawn = False, 0

        def words(self, n: int) -> Any:
            self.drawn += 1
            return source.words(n)

    found = []
    for counts in ([7] * 50, [10**6, *[0] * 49]):
        source, counting = NotPrivateSeededSource(4), Counting()
        for _ in range(40):
            ExponentialMechanism(50, 1, Fraction(1, 10)).draw(counts, counting)
        found.append(counting.drawn)
    assert max(found) < 2.2 * min(found)


# --- how far from the largest -----------------------------------------------------------------------------------------


def falls_short(scores: tuple[int, ...], choice: LargestCounts, more_than: int) -> float:
    """The probability that some winner is further below the largest that is left than that."""
    law = exponential if isinstance(choice, ExponentialMechanism) else one_round
    return sum(
        probability
        for winners, probability in ranking(scores, choice.rounds, float(choice.rate), law).items()
        if any(
            max(score for index, score in enumerate(scores) if index not in winners[:place]) - scores[winner]
            > more_than
            for place, winner in enumerate(winners)
        )
    )


@given(
    st.lists(st.integers(0, 60), min_size=2, max_size=5),
    st.integers(1, 3),
    st.sampled_from([1, 3]),
    st.sampled_from([Fraction(1, 5), Fraction(1), Fraction(4)]),
    st.sampled_from([Fraction(1, 20), Fraction(1, 3)]),
)
def test_winners_fall_short_by_more_than_stated_with_at_most_beta(
    scores: list[int], winners: int, sensitivity: int, epsilon: Fraction, beta: Fraction
) -> None:
    for kind in (PermuteAndFlip, ExponentialMechanism):
        choice = kind(len(scores), min(winners, len(scores)), epsilon, sensitivity)
        assert falls_short(tuple(scores), choice, choice.shortfall(beta)) <= beta + ROUNDING


def test_of_two_candidates_the_shortfall_is_exact() -> None:
    """The smaller one wins with probability exp(-a t)/2."""
    choice = PermuteAndFlip(2, 1, Fraction(1, 10))
    width = choice.shortfall(Fraction(1, 20))
    assert falls_short((width + 1, 0), choice, width) <= 0.05 < falls_short((width, 0), choice, width - 1)


@given(st.integers(2, 30), st.integers(1, 5), st.integers(1, 6), st.integers(0, 10**6))
def test_an_epsilon_for_a_shortfall_achieves_it(candidates: int, winners: int, sensitivity: int, width: int) -> None:
    winners = min(winners, candidates)
    epsilon = epsilon_for_shortfall(candidates, winners, sensitivity, width, Fraction(1, 20))
    assert PermuteAndFlip(candidates, winners, epsilon, sensitivity).shortfall(Fraction(1, 20)) <= width
    less = PermuteAndFlip(candidates, winners, epsilon * Fraction(99, 100), sensitivity)
    assert less.shortfall(Fraction(1, 20)) >= width  # no more than needed


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((1, 1, Fraction(1)), "candidates"),
        ((3, 0, Fraction(1)), "winners"),
        ((3, 4, Fraction(1)), "winners: must be at most the number of candidates, 3; got 4"),
        ((3, 1, Fraction(0)), "epsilon"),
        ((3, 1, Fraction(1), 0), "sensitivity"),
        ((3, 1, Fraction(1), True), "sensitivity"),
    ],
)
def test_invalid_numbers_are_refused_by_name(arguments: tuple[object, ...], what: str) -> None:
    with pytest.raises(InvalidValueError, match=what):
        PermuteAndFlip(*arguments)  # type: ignore[arg-type]


def test_counts_must_be_those_of_the_candidates() -> None:
    with pytest.raises(InvalidValueError, match="must be 3, one for each candidate; got 2"):
        PermuteAndFlip(3, 1, Fraction(1)).draw([987654, 1], NotPrivateSeededSource(1))
