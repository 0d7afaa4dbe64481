"""Above-threshold (sparse vector): a sequence of queries, of which only the positive answers cost.

Above-threshold (sparse vector): a sequence of queries, of which only the positive answers cost.

The implementation uses integers only.  A query is an exact integer sum S, its sensitivity C (the most that one privacy
unit can change S), and a threshold T; C and T are public.  It is mapped to a lattice with D = 2^20 steps per
sensitivity::

    a = floor(D (S - T)/C).

If ``|S - S'| <= C``, then D (S - T)/C and D (S' - T)/C differ by at most D; since D is an integer, floor(x + D) is
floor(x) + D, and floor is monotone: ``|a - a'| <= D``, exactly.  For the same reason S <= S' implies a <= a'.

The mechanism: rho, discrete Laplace noise (`dpnb.mechanisms.laplace`) of scale D/e1, is drawn once, before the first
query, and never again.  Each query gets nu of scale 2 c D/e2 (c D/e2 if all are monotone) and is *above* if
a + nu >= rho; only this is answered.  With values, a positive answer includes a + zeta, zeta of scale c D/e3, drawn for
that value alone.  After c positive answers the mechanism ends.

Why it costs e1 + e2 + e3, however many queries are below
---------------------------------------------------------
Fix all answers; the queries, chosen from earlier answers, are then fixed too.  Let a_i and a'_i be their lattice points
for two neighbouring tables.  rho and all nu, zeta are independent, so the probability of the answers is::

    sum over r of P(rho = r) * prod below P(a_i + nu < r) * prod above P(a_i + nu >= r) P(a_i + zeta = v_i).

Compare term r for the first table with term r + D for the second:

* P(rho = r) <= exp(e1) P(rho = r + D), by the scale of rho;
* a'_i <= a_i + D, so a_i + nu < r implies a'_i + nu < r + D: "below" costs nothing;
* a_i <= a'_i + D, so P(a_i + nu >= r) <= P(a'_i + nu >= r - D) <= exp(2 D/(2 c D/e2)) P(a'_i + nu >= r + D), that is
  exp(e2/c), at most c times;
* each value costs exp(e3/c), at most c times.

r -> r + D runs through all integers once, so the sums have a ratio of at most exp(e1 + e2 + e3).

Monotone: between neighbours all a_i change in the same direction, as counts and sums of non-negative contributions do
when a unit is added or removed.  If all a_i <= a'_i, the same shift needs only P(a_i + nu >= r) <= P(a'_i + nu >= r) <=
exp(D/(c D/e2)) P(a'_i + nu >= r + D).  If all a_i >= a'_i, compare term r with term r itself: "below" implies "below",
and P(a_i + nu >= r) <= P(a'_i + nu >= r - D) <= exp(e2/c) P(a'_i + nu >= r); rho costs nothing.  A reversed query
(T - S) changes in the opposite direction and must not be included.

A new threshold after each positive answer
------------------------------------------
With ``thresholds = c`` a new rho is drawn after each positive answer but the last, and each rho serves one positive
answer: these are c scans with one positive answer each, one after another, with epsilon/c each.  Which queries the next
scan gets is chosen from the earlier answers, and by the above it costs epsilon/c whatever these are.  So together they
are c mechanisms in pure DP (:class:`~dpnb.accounting.Repeated`), all of which are admitted before the first, so that
what an answer says does not decide whether there is another charge.  A filter that adds squares counts that for about a
c-th of one mechanism with epsilon.

With one threshold this is false: all answers share rho, so that the answers up to the first positive one alone may lose
e1 + e2/c, which is more than epsilon/c.  One threshold has less noise at the same epsilon, and is right where it is the
sum of the epsilons that counts: in `BasicFilter`, and in a reserve.

This is the variant that Lyu, Su and Li recommend, in integers.  It has none of the errors that they found in others:
releasing the compared value, omitting c from nu's scale, omitting nu, continuing after c positive answers.

References
----------
- Lyu, Su, Li 2017, *Understanding the Sparse Vector Technique for Differential Privacy*, arXiv:1603.01699v4.
- Dwork, Roth 2014, *The Algorithmic Foundations of Differential Privacy*, section 3.6.
"""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass, field
from fractions import Fraction

from dpnb.accounting.exact import Number, failure_probability, positive, shown, to_text
from dpnb.accounting.losses import PureDP, Repeated
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import InvalidValueError, MechanismClosed, RequestError
from dpnb.mechanisms.laplace import discrete_laplace, laplace_half_width
from dpnb.mechanisms.randomness import NoiseSource

STEPS = 2**20
"""Lattice steps per sensitivity: the floor costs a millionth of C in accuracy, and no privacy."""


MAX_COUNT = 10**9
"""Maximum number of positive answers and of queries."""


@dataclass(frozen=True, slots=True)
class EpsilonSplit:
    """The parts of epsilon: of the threshold, of all positive answers together, and of all their values together."""

    threshold: Fraction  # e1 in `above_threshold`
    positives: Fraction  # e2
    values: Fraction  # e3; 0 without values

    @property
    def epsilon(self) -> Fraction:
        """The total."""
        return self.threshold + self.positives + self.values

    @classmethod
    def divide(
        cls, epsilon: Number, max_positives: int, *, monotonic: bool = False, return_values: bool = False
    ) -> EpsilonSplit:
        """Divide epsilon so that the comparisons are as accurate as possible; the parts sum to epsilon exactly.

        Between threshold and positives the ratio is 1 : (2c)^(2/3), or 1 : c^(2/3) if monotonic, which minimises the
        variance of nu - rho (Lyu, Su and Li on the allocation), the power rounded to tenths.  Values get half of
        epsilon: the noise of the comparisons and of the values is then at most twice what it would be with all of
        epsilon.

        c is `max_positives`, 1 to 10^9.  A float epsilon means its shortest decimal.  `monotonic` means that adding a
        unit changes all queries in the same direction, `return_values` that positive answers include values.
        """
        total, count = positive(epsilon, name="epsilon"), whole_count(max_positives, "max_positives")
        decisions = total / 2 if return_values else total
        tenths = _cube_root(1000 * (count if monotonic else 2 * count) ** 2)
        threshold = decisions * Fraction(10, 10 + tenths)
        return cls(threshold, decisions - threshold, total - decisions)


def whole_count(value: object, name: str) -> int:
    """A declared number of positive answers or queries, an integer from 1 to 10^9."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_COUNT:
        raise InvalidValueError(f"{name}: must be an integer from 1 to {MAX_COUNT:,}; got {shown(value)}")
    return value


def _cube_root(number: int) -> int:
    """The integer nearest to the cube root of an even number, the same on every machine; ties cannot occur."""
    root = round(math.cbrt(number))
    while (2 * root - 1) ** 3 > 8 * number:
        root -= 1
    while (2 * root + 1) ** 3 < 8 * number:
        root += 1
    return root


def on_lattice(total: int, sensitivity: int, threshold: Fraction) -> int:
    """The distance of a query above its threshold in lattice steps, rounded down.

    `total` is the exact sum: private, so never in a message.  `sensitivity`, at least 1, is the most that one privacy
    unit can change it.  `threshold` has the units of the sum, and an int is accepted.
    """
    check_query(total, sensitivity, threshold)
    top, bottom = threshold.as_integer_ratio()
    return STEPS * (total * bottom - top) // (sensitivity * bottom)


def from_lattice(steps: int, sensitivity: int, threshold: Fraction) -> Fraction:
    """A released value in the units of the sum: T + C steps/STEPS."""
    return threshold + Fraction(sensitivity * steps, STEPS)


@dataclass(frozen=True, slots=True)
class AboveThresholdParameters:
    """The public parameters of a launch, and what follows from them before any query."""

    epsilon: Fraction  # the total cost, charged at launch
    max_positives: int  # c, the maximum number of positive answers
    monotonic: bool = False
    return_values: bool = False
    thresholds: int = 1  # how often the threshold's noise is drawn: once, or for each positive answer
    split: EpsilonSplit = field(init=False, repr=False, compare=False)  # of the epsilon of one threshold

    def __post_init__(self) -> None:
        whole_count(self.max_positives, "max_positives")
        if self.thresholds not in (1, self.max_positives):
            raise InvalidValueError(f"thresholds: must be 1 or max_positives; got {shown(self.thresholds)}")
        total = positive(self.epsilon, name="epsilon")
        split = EpsilonSplit.divide(
            total / self.thresholds, self.positives_each, monotonic=self.monotonic, return_values=self.return_values
        )
        object.__setattr__(self, "epsilon", total)
        object.__setattr__(self, "split", split)

    @property
    def positives_each(self) -> int:
        """The number of positive answers for which one threshold serves."""
        return self.max_positives // self.thresholds

    @property
    def loss(self) -> PureDP | Repeated:
        """The loss that is charged at launch."""
        if self.thresholds == 1:
            return PureDP(self.epsilon)
        return Repeated(PureDP(self.epsilon / self.thresholds), self.thresholds)

    @property
    def threshold_scale(self) -> Fraction:
        """Scale of the threshold's noise, in lattice steps."""
        return STEPS / self.split.threshold

    @property
    def query_scale(self) -> Fraction:
        """Scale of the noise of each comparison, in lattice steps."""
        return (1 if self.monotonic else 2) * self.positives_each * STEPS / self.split.positives

    @property
    def value_scale(self) -> Fraction | None:
        """Scale of a value's noise, in lattice steps; None without values."""
        return self.positives_each * STEPS / self.split.values if self.return_values else None

    def margin_steps(self, queries: int, beta: Number) -> int:
        """The distance w from the threshold, in lattice steps, at which all answers are correct at once.

        Answers are wrong only if some |rho| exceeds w1, or some nu is beyond w2 on the one side that reverses its
        answer; beta is divided between these in proportion to the scales, and among the rho and the nu equally.
        Otherwise D (S - T)/C >= w = w1 + w2 gives a >= w, hence a + nu >= rho, and D (S - T)/C < -w gives a < -w, hence
        a + nu < rho.  (With reals: Dwork and Roth, Theorem 3.24.)

        `beta`, in [1e-300, 1), is the probability that any answer to one of `queries` (1 to 10^9) further away is
        wrong.
        """
        failure = failure_probability(beta, name="beta", example="0.05")
        rho_scale, nu_scale = self.threshold_scale, self.query_scale
        for_rho = failure * rho_scale / (rho_scale + nu_scale)
        each = 2 * (failure - for_rho) / whole_count(queries, "queries")  # only one side of each nu matters
        width = laplace_half_width(nu_scale, each) if each < 1 else 0
        return laplace_half_width(rho_scale, for_rho / self.thresholds) + width

    def margin(self, queries: int, beta: Number) -> Fraction:
        """`margin_steps` as a multiple of the sensitivity: the required |S - T|/C."""
        return Fraction(self.margin_steps(queries, beta), STEPS)

    def value_half_width(self, alpha: Number) -> Fraction:
        """Half-width of a value's interval, as a multiple of the sensitivity; it fails with probability at most alpha.

        It holds conditionally on all answers, which do not depend on a value's noise: selection causes no bias.  One
        lattice step is added for the floor.  `alpha` is in [1e-300, 1).
        """
        if self.value_scale is None:
            raise RequestError("value_half_width: needs values; launch another mechanism with return_values=True")
        return Fraction(laplace_half_width(self.value_scale, alpha) + 1, STEPS)


class SingleUse(NotCopyable):
    """A mechanism that gives `most` answers; a copy, which is refused, would give them again with the same noise."""

    __slots__ = ("_lock", "_most", "_process", "_source", "_used")

    _not_copied = "its noise is secret and its answers are counted; launch another one"

    def __init__(self, most: int, source: NoiseSource) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._most, self._used, self._source = most, 0, source

    @property
    def n_used(self) -> int:
        """The number of answers so far; of a scan with Laplace noise, of the positive ones."""
        return self._used

    @property
    def n_remaining(self) -> int:
        """The number of answers that remain."""
        return self._most - self._used

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise MechanismClosed(
                f"{type(self).__name__}: must be used in the process that launched it; got a fork of that process; use "
                "it there, or launch another one"
            )

    def _check_remaining(self, why: str) -> None:
        if self.n_remaining < 1:
            raise MechanismClosed(
                f"{type(self).__name__}: is exhausted, {why}; launch another one, which is charged again"
            )


@dataclass(frozen=True, slots=True)
class LaplaceComparison:
    """The answer to one query."""

    above: bool
    # the query's lattice point with separate noise (see `from_lattice`), for a positive answer with values
    value: int | None = None


class LaplaceAboveThreshold(SingleUse):
    """Compares sums with thresholds, until `max_positives` of them are above; see this module's docstring.

    `epsilon` is the cost of all answers together; the caller charges it before launching.  With `monotonic`, the caller
    guarantees that adding a unit changes all queries in the same direction.  With `return_values`, positive answers
    include values.  `thresholds` is 1, or `max_positives` for a new threshold after each positive answer.
    """

    __slots__ = ("_hidden", "_query_scale", "_terms", "_value_scale")

    def __init__(
        self,
        epsilon: Fraction,
        max_positives: int,
        *,
        monotonic: bool,
        return_values: bool,
        source: NoiseSource,
        thresholds: int = 1,
    ) -> None:
        self._terms = AboveThresholdParameters(epsilon, max_positives, monotonic, return_values, thresholds)
        super().__init__(self._terms.max_positives, source)
        self._query_scale, self._value_scale = self._terms.query_scale, self._terms.value_scale
        # The number of the threshold, from 0, and its noise.
        self._hidden = 0, discrete_laplace(self._terms.threshold_scale, source)

    @property
    def terms(self) -> AboveThresholdParameters:
        """The parameters of the launch."""
        return self._terms

    def ask(self, total: int, *, sensitivity: int, threshold: Fraction) -> LaplaceComparison:
        """Compare a sum with a threshold; for the arguments see `on_lattice`.

        `MechanismClosed` if the mechanism is exhausted, or was launched in another process.
        """
        steps = on_lattice(total, sensitivity, threshold)
        self._check_process()
        with self._lock:
            self._check_remaining(f"all {self._most} positive answers were given")
            number = self._used if self._terms.thresholds > 1 else 0
            if self._hidden[0] != number:  # drawn here, so that no interrupt lets one threshold serve twice
                self._hidden = number, discrete_laplace(self._terms.threshold_scale, self._source)
            if steps + discrete_laplace(self._query_scale, self._source) < self._hidden[1]:
                return LaplaceComparison(False)
            # Counted first: an interrupt may then lose a positive answer, but never release an extra one.
            self._used += 1
            if self._value_scale is None:
                return LaplaceComparison(True)
            return LaplaceComparison(True, steps + discrete_laplace(self._value_scale, self._source))

    @safe_repr
    def __repr__(self) -> str:
        terms = self._terms
        return (
            f"LaplaceAboveThreshold(epsilon={to_text(terms.epsilon)}, max_positives={terms.max_positives}, "
            f"monotonic={terms.monotonic}, return_values={terms.return_values}, n_used={self.n_used})"
        )


def check_query(total: object, sensitivity: object, threshold: object) -> None:
    """Refuse an invalid query.  The message names the sum's type only: the sum itself is private."""
    if isinstance(total, bool) or not isinstance(total, int):
        raise InvalidValueError(
            f"total: must be an int; got {type(total).__name__}; round the values to an integer grid first"
        )
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or sensitivity < 1:
        raise InvalidValueError(
            f"sensitivity: must be an int of at least 1; got {shown(sensitivity)}; "
            "the value of a query that no privacy unit can change is public"
        )
    if isinstance(threshold, bool) or not isinstance(threshold, int | Fraction):
        raise InvalidValueError(
            f"threshold: must be an exact number (Fraction or int); got {shown(threshold)}; "
            "convert it with dpnb.accounting.exact.exact"
        )
