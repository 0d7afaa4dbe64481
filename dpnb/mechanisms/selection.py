"""Selections of groups: those whose noisy number of units reaches a threshold, and the largest of some counts.

Groups whose number of units reaches a threshold
------------------------------------------------
N(0, sigma^2) is added to the number of units of each group that has any; a group is released, with its noisy number,
if that reaches T; nothing is released about the others.

Privacy (approximate GDP; add or remove one unit u, which counts in at most G groups). Let D' be D with u. Of the
groups of D', at most G are u's alone; they have one unit each and are not in D. Let E be the event that none of them
reaches T. The noises of different groups are independent, so given E the other groups' results have their
unconditioned distribution, and that is mu-GDP against D's with mu = sqrt(G)/sigma: at most G counts differ, by one
each, and thresholding is post-processing. P(not E) <= 1 - Phi((T - 1)/sigma)^G = delta. So the output on D' is a
mixture with weight 1 - delta of a part that is mu-GDP against D's output, and the output on D is trivially such a
mixture with the same weight.

For estimates and intervals of a noisy number, given that its group was released, see
`dpnb.results.estimates.estimate`.

The largest counts, by permute-and-flip
---------------------------------------
One round chooses one of n candidates with integer scores q_1, ..., q_n.  Let q* be the largest score and ``p_s = exp(-a
(q* - q_s))`` for a rate a.  For each candidate a coin with probability p_s of heads is tossed, and one of those with
heads, of which there is at least one, since p_s = 1 where q_s = q*, is chosen uniformly.  McKenna and Sheldon toss the
coins in random order until the first heads; in a random order independent of the coins, the first of those with heads
is each of them with equal probability, so the distribution is the same, and here the number of coins does not depend on
the scores.  The k largest are chosen in k rounds, each without the earlier winners (peeling).

Everything is an integer: ``a (q* - q_s)`` is rational, and :mod:`dpnb.mechanisms.randomness` draws an event of
probability ``exp(-g)`` exactly.  There is no noisy value that could have low-order bits, and the scores themselves are
not released.

Why one round of monotone scores costs a C
------------------------------------------
*Scores*: between neighbouring tables all scores change in the same direction, each by 0 to C, as counts do when a unit
is added or removed.  *Claim*: no probability changes by a factor of more than ``exp(a C)``.

Give each candidate an independent arrival time, uniform on [0, 1]: candidate r is chosen if its coin shows heads and no
other with heads arrived before it.  Hence ::

    P(r) = p_r * integral over t in [0, 1] of the product over s != r of (1 - t p_s).

1. *P(r) falls when the score of another candidate v rises by x.*  If v stays below q*, or at it, only p_v changes, and
   rises.  If v has the largest score, all other p_s are multiplied by l = exp(-a x); with u = t l the new value is p_r
   times the integral over u in [0, l] of (1 - u/l) times the product over s != r, v of (1 - u p_s), which is at most
   the old one, since 1 - u/l <= 1 - u.  Any rise is one of the first kind, followed by one of the second.
2. *P(r) rises when its own score rises by x, by a factor of at most exp(a x).*  If r stays below q*, or at it, only p_r
   changes, by exactly exp(a x).  If r has the largest score, p_r = 1 and all other p_s are multiplied by l: with
   u = t l the new value is 1/l times the integral over u in [0, l] of the product of (1 - u p_s), at most exp(a x)
   times the old one; and it is no less than the old one, since every factor has risen.
3. *A shift of all scores by the same number changes nothing.*

Let the scores rise by d_s, 0 <= d_s <= C.  By 1 and 2, P(r) becomes at most what it would be if only r rose by C, at
most exp(a C) P(r).  And it becomes at least what it would be if all others rose by C; by 3 that is what it would be if
r alone fell by C, at least exp(-a C) P(r).

With scores that may change in both directions the worst case is that r rises by C while all others fall by C: by 3
and 2 the factor is then up to exp(2 a C).  So the rate a = epsilon/C is right only for monotone scores, and for all
others half of it, as McKenna and Sheldon have it.  ``tests/mechanisms/test_permute_and_flip.py`` enumerates both.

k rounds at a = epsilon/(k C) cost epsilon/k each, whatever the earlier rounds chose, since the scores of the remaining
candidates are monotone too: they are k mechanisms in pure DP, one after another, and together at most epsilon.

The largest counts, by the exponential mechanism
------------------------------------------------
One round chooses each candidate r with a probability proportional to p_r, as above with a rate a.  A candidate is drawn
uniformly and a coin with probability p_r of heads is tossed, until the first heads: each draw ends with r with
probability p_r/n, so the candidate with the first heads has the stated distribution.  n draws are made at a time, and
all of them finished, so that the number of coins hardly depends on the scores: one of n draws shows heads with
probability at least 1 - 1/e, since the largest count always does.

*Claim*: with monotone scores, each of which one unit raises by 0 to C, a round has bounded range a C.  *Proof*: the
probability of r is multiplied by exp(a d_r) and divided by the growth of the sum, which is the same for all r; so the
logarithms of the ratios lie in an interval of length a C.  ∎  C is the most that a unit adds to *one* count, to however
many it adds.  k rounds, each without the earlier winners, are k mechanisms with that range; they choose as one draw of
a Gumbel variable for each count would, in the order of the sums (Durfee and Rogers 2019).

A round with m + 1 candidates chooses one that is d or more below the largest with probability at most m exp(-a d).

Where a loss counts by its range, the rate may be up to twice that of permute-and-flip at the same cost; where epsilon
counts, it is the same, and permute-and-flip is never less accurate.

How far permute-and-flip may be from the largest
------------------------------------------------
If q_r <= q* - d, d > 0, the product in P(r) contains 1 - t for a candidate with the largest score, and so P(r) is at
most exp(-a d)/2, half of the bound for the exponential mechanism.  A round with m candidates chooses one that is d or
more below the largest of them with probability at most ``(m - 1) exp(-a d)/2``, and the probabilities of the rounds add
up.

References
----------
- McKenna, Sheldon 2020, *Permute-and-Flip: A new mechanism for differentially private selection*, arXiv:2010.12603,
  Algorithm 1.
- McSherry, Talwar 2007, *Mechanism design via differential privacy* (the exponential mechanism).
- Durfee, Rogers 2019, *Practical differentially private top-k selection with pay-what-you-get composition*.
- Dwork, Roth 2014, *The Algorithmic Foundations of Differential Privacy*, section 3.3 (counts are monotone).
- Bhaskar, Laxman, Smith, Thakurta 2010, *Discovering frequent patterns in sensitive data* (peeling).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpnb.accounting.conversions.directed import directed, log
from dpnb.accounting.exact import Number, binary_down, failure_probability, positive, shown
from dpnb.accounting.losses import BoundedRange, Loss, PureDP, Repeated
from dpnb.accounting.losses.epsilon import is_range
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.errors import InvalidValueError
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import ExactBernoulli, NoiseSource

_MARGIN = 1 + 1e-12
"""Far above the error of `ndtri`, which tests/test_assumptions.py measures, and the rounding errors here."""

_DIGITS = 4
"""Digits of an epsilon that is computed from a shortfall."""


def threshold_for(sigma: float, groups: int, delta: Fraction) -> float:
    """The noisy number of units from which a group is released; rounded up.

    One unit counts in at most `groups` groups; `delta` bounds the probability that any group that only one unit has is
    released.  The literal binary value is used.

    >>> round(threshold_for(4.0, 2, Fraction(1, 10**6)), 3)
    20.567
    """
    from scipy.special import ndtri  # imported when first used

    if not 0 < delta < 1 or binary_down(delta) < 1e-300:
        raise InvalidValueError(f"delta: must lie between 0 and 1; got {float(delta)!r}; give for example 1e-8")
    each = -math.expm1(math.log1p(-binary_down(delta)) / groups) / _MARGIN
    return (1 + sigma * max(-float(ndtri(each)), 0.0)) * _MARGIN


def least_named(sigma: float, groups: int, delta: Fraction, exponent: int) -> int:
    """The smallest multiple of the output grid, of spacing ``2**exponent``, at which a group is released.

    >>> least_named(4.0, 2, Fraction(1, 10**6), -18) * 2.0**-18 > 20
    True
    """
    # Rounding to the output grid may raise a value by half a step.
    return math.ceil(Fraction(threshold_for(sigma, groups, delta)) / Fraction(2) ** exponent) + 1


def named(
    counts: NDArray[np.int64], *, sigma: float, groups: int, delta: Fraction, source: NoiseSource
) -> tuple[list[int], Measurement]:
    """The groups that are released, by their ascending indices, and their noisy numbers of units.

    `counts` are those of each group that has any, so at least 1; intervals assume that.

    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> counts = np.array([1, 5000])
    >>> released, noisy = named(counts, sigma=4.0, groups=1, delta=Fraction(1, 10**20), source=SystemNoiseSource())
    >>> released, len(noisy.values)
    ([1], 1)
    """
    noisy = measure(counts, sigma=sigma, source=source)
    least = least_named(sigma, groups, delta, noisy.exponent)
    released = [index for index, value in enumerate(noisy.values) if value >= least]
    return released, Measurement(tuple(noisy.values[index] for index in released), noisy.exponent, noisy.sigma)


@dataclass(frozen=True, slots=True)
class LargestCounts(ABC):
    """The choice of the largest of some counts, described by public numbers only.

    `winners` of `candidates` are chosen, with the sum `epsilon` of all rounds together.  `sensitivity` is the most that
    one privacy unit adds to one count, at least 1; a unit must not lower any count.
    """

    candidates: int
    winners: int
    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, name="epsilon"))
        for name, least in (("candidates", 2), ("winners", 1), ("sensitivity", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidValueError(f"{name}: must be a whole number of at least {least}; got {shown(value)}")
        if self.winners > self.candidates:
            raise InvalidValueError(
                f"winners: must be at most the number of candidates, {self.candidates}; got {self.winners}"
            )

    @property
    def loss(self) -> PureDP | BoundedRange | Repeated:
        """The loss of all rounds together."""
        once = self._loss(self.epsilon / self.rounds)
        return Repeated(once, self.rounds) if self.rounds > 1 else once

    @property
    def rounds(self) -> int:
        """Number of rounds: if all candidates are ranked, the last one needs none."""
        return min(self.winners, self.candidates - 1)

    @property
    def rate(self) -> Fraction:
        """a: the loss of a round, for each step of a count."""
        return self.epsilon / (self.rounds * self.sensitivity)

    def shortfall(self, beta: Number) -> int:
        """How far a winner may be below the largest remaining count, except with probability `beta`.

        With that probability or less, there is a round whose winner is further below the largest of the counts that had
        not been chosen before it; see this module's docstring.  `beta` is in [1e-300, 1).  The result is in steps of
        the counts, and 0 if a round errs at all with probability at most `beta`.
        """
        # Counts are integers: the error is more than w steps only if it is w + 1 or more.
        return max(math.ceil(self.log_odds(beta) / self.rate) - 1, 0)

    def log_odds(self, beta: Number) -> Fraction:
        """The rate times the distance beyond which all wrong choices have probability `beta` together; rounded up."""
        failure = failure_probability(beta, name="beta", example="0.05")
        odds = self._failures * wrong_choices(self.candidates, self.winners) / failure
        return Fraction(0) if odds <= 1 else directed(lambda ctx: (log(ctx, odds),), up=True)

    _failures = Fraction(1)
    """A wrong choice at the distance d has at most this times exp(-a d) as its probability."""

    @abstractmethod
    def _loss(self, epsilon: Fraction) -> PureDP | BoundedRange:
        """The loss of one round."""

    @abstractmethod
    def _chosen(self, gaps: Sequence[int], bottom: int, source: NoiseSource) -> int:
        """The position that one round chooses; position r has heads with probability exp(-gaps[r]/bottom)."""

    def draw(self, counts: Sequence[int], source: NoiseSource) -> tuple[int, ...]:
        """Choose the winners: their indices, in the order in which they were chosen.

        The counts are private, so never in a message.
        """
        if len(counts) != self.candidates:
            raise InvalidValueError(f"counts: must be {self.candidates}, one for each candidate; got {len(counts)}")
        top, bottom = self.rate.as_integer_ratio()
        remaining = list(range(self.candidates))
        chosen = []
        for _ in range(self.rounds):
            largest = max(counts[index] for index in remaining)
            gaps = [top * (largest - counts[index]) for index in remaining]
            chosen.append(remaining.pop(self._chosen(gaps, bottom, source)))
        return (*chosen, *remaining) if self.winners == self.candidates else tuple(chosen)


class PermuteAndFlip(LargestCounts):
    """Permute-and-flip, whose rounds are in pure DP.

    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> choice = PermuteAndFlip(candidates=4, winners=2, epsilon=Fraction(100), sensitivity=1)
    >>> choice.draw([5, 900, 20, 400], SystemNoiseSource())
    (1, 3)
    """

    __slots__ = ()
    _failures = Fraction(1, 2)

    def _loss(self, epsilon: Fraction) -> PureDP:
        return PureDP(epsilon)

    def _chosen(self, gaps: Sequence[int], bottom: int, source: NoiseSource) -> int:
        coins = [ExactBernoulli(source, bottom.bit_length()).happens_beyond_one(gap, bottom) for gap in gaps]
        heads = [position for position, shows in enumerate(coins) if shows]
        return heads[ExactBernoulli(source, 0).below(len(heads))]


class ExponentialMechanism(LargestCounts):
    """The exponential mechanism, whose rounds have a bounded range.

    >>> from dpnb.mechanisms import SystemNoiseSource
    >>> choice = ExponentialMechanism(candidates=4, winners=2, epsilon=Fraction(100), sensitivity=1)
    >>> choice.draw([5, 900, 20, 400], SystemNoiseSource()), choice.loss
    ((1, 3), Repeated(BoundedRange(range=50.0), 2))
    """

    __slots__ = ()

    def _loss(self, epsilon: Fraction) -> BoundedRange:
        return BoundedRange(epsilon)

    def _chosen(self, gaps: Sequence[int], bottom: int, source: NoiseSource) -> int:
        heads: list[int] = []
        while not heads:
            drawn = [ExactBernoulli(source, 0).below(len(gaps)) for _ in gaps]
            coins = [
                ExactBernoulli(source, bottom.bit_length()).happens_beyond_one(gaps[position], bottom)
                for position in drawn
            ]
            heads = [position for position, shows in zip(drawn, coins, strict=True) if shows]
        return heads[0]


def choice_of(loss: Loss, candidates: int, winners: int, sensitivity: int) -> LargestCounts:
    """The mechanism whose loss is `loss`; the other arguments are as for `LargestCounts`."""
    kind = ExponentialMechanism if is_range(loss) else PermuteAndFlip
    return kind(candidates, winners, as_amount(loss).epsilon, sensitivity)


def epsilon_for_shortfall(candidates: int, winners: int, sensitivity: int, shortfall: int, beta: Number) -> Fraction:
    """The epsilon with which no winner falls short by more than `shortfall`, except with probability `beta`.

    By the formula of `PermuteAndFlip.shortfall`, rounded up to four digits.  The other arguments are as for
    `PermuteAndFlip`; `shortfall` is in steps of the counts, and `beta` in [1e-300, 1).

    >>> from fractions import Fraction
    >>> from dpnb.mechanisms.selection import PermuteAndFlip, epsilon_for_shortfall
    >>> epsilon = epsilon_for_shortfall(5, 1, 1, shortfall=40, beta=Fraction(1, 20))
    >>> epsilon, PermuteAndFlip(5, 1, epsilon).shortfall(Fraction(1, 20))
    (Fraction(4499, 50000), 40)
    """
    choice = PermuteAndFlip(candidates, winners, Fraction(1), sensitivity)
    if shortfall < 0:
        raise InvalidValueError(f"shortfall: must be a whole number of at least 0; got {shown(shortfall)}")
    least = choice.log_odds(beta) / choice.rate / (shortfall + 1)
    digits = Context(prec=_DIGITS, rounding=ROUND_CEILING)
    return Fraction(digits.divide(Decimal(least.numerator), Decimal(least.denominator)))


def wrong_choices(candidates: int, winners: int) -> int:
    """The number of candidates that could win wrongly, over all rounds: n - 1, then n - 2, and so on."""
    rounds = min(winners, candidates - 1)
    return rounds * (2 * candidates - rounds - 1) // 2
