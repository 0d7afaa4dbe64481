"""What a pure-DP launch or a bounded range leaves of a GDP budget, when it is not first converted to GDP.

Write G_m for the trade-off function of N(0, 1) against N(m, 1), RR(e) for that of randomised response with parameter e,
f (x) g for the trade-off function of the product, and delta_f(x) for the privacy profile of f, its hockey-stick
divergence at e^x.  f >= g holds precisely if delta_f(x) <= delta_g(x) for every real x, and for symmetric f and g, as
all of them here are but the pairs of a bounded range, if it does so for every x >= 0 (Dong, Roth and Su 2022,
Proposition 2.12).

The rule of :class:`~dpnb.accounting.GDPFilter`. The state is the GDP budget r that is left, at the start mu0. A
mechanism whose trade-off function is at least f, for every pair of neighbours and given any past, is admitted if some s
>= 0 has f (x) G_s >= G_r; the new state is the largest such s, the *residue* (Regehr et al. 2026, *Privacy Filters are
Captured by Residues*, arXiv:2602.15815v2, call this the GDP residue filter). For a Gaussian release, s^2 = r^2 - mu^2,
as in :mod:`dpnb.accounting.filters.gdp`; for an e-DP mechanism it is computed below.

Claim.  However the mechanisms are chosen, all of them together are mu0-GDP.

Proof.  By induction over the number k of remaining rounds: from the state r, and given any past, the view of the
remaining rounds has a trade-off function of at least G_r.  For k = 0 the view is constant, and G_0 is the largest
trade-off function.  For k > 0 the choice of the next mechanism is a function of the past (condition on its coins, if it
is random), so its f, and with it s, are fixed before its outcome is seen.  Whatever the outcome, the view of the other
k - 1 rounds has at least G_s.  So the view is the composition of a mechanism with at least f and a family of mechanisms
with at least G_s each, hence has at least f (x) G_s (Dong, Roth and Su 2022, Theorem 3.2), which is at least G_r.  The
number of rounds need not be bounded: a violation would show after finitely many.  ∎

An interactive e-DP mechanism, such as a scan for values above a threshold, is for each pair of neighbours an
interactive post-processing of one bit of randomised response, drawn at its launch (Vadhan and Wang 2021).  Requests to
several of them in any order are choices of one adversary who sees the bits' post-processings, so the launch is one step
with f = RR(e), and later requests to it are free; see :mod:`dpnb.accounting.filters.base` for what this needs.

The charge r^2 - s^2 depends on r, unlike that of a Gaussian release.  A charge that was computed at r is valid, and
larger than necessary, at every larger state (:func:`~dpnb.accounting.conversions.residue_charge`), but not at a smaller
one: so it is computed once, when the mechanism is admitted, and added as it is.

Losses with a delta.  An (epsilon, delta)-DP mechanism is for each pair a post-processing of one that reveals the table
with probability delta and otherwise is RR(epsilon) (Kairouz, Oh and Viswanath 2015, Theorem 3.1); the notes of
:class:`dpnb.Budget` apply to its good part.

The residue of an e-DP mechanism is the largest s with RR(e) (x) G_s >= G_r.  If the budget also has a reserve E < e
for pure losses, and the mechanism uses all of it, the right side is RR(E) (x) G_r, which for E = 0 is G_r.  The residue
is the root s of::

    (1 - delta_s(e)) 2/(1 + exp(e)) = (1 - delta_r(E)) 2/(1 + exp(E)),
    delta_m(x) = Q(x/m - m/2) - exp(x) Q(x/m + m/2),

with Q(x) = P(N(0, 1) > x), and there is none if already 2/(1 + exp(e)) is less than the right side.

Proof.  RR(e) answers the truth with probability p = e^e/(1 + e^e), so its product with G_s has the profile p delta_s(x
- e) + (1 - p) delta_s(x + e).  At x = 0, with delta_s(-e) = 1 - e^-e + e^-e delta_s(e), this is tanh(e/2) + 2
delta_s(e)/(1 + e^e), one minus the left side of the equation; that of RR(E) (x) G_r is one minus the right side.  So
the equation is equality of the profiles at x = 0, and no larger s is possible.  It remains to show that equality at 0
implies the inequality everywhere.

The density of the privacy loss t is, for G_m, that of N(m^2/2, m^2), which is e^(t/2) times an even function of t; for
a product with randomised response it is a mixture of two shifted ones, likewise e^(t/2) times an even function.  The
logarithm of the ratio of the two densities, the product with RR(e) over the budget, is::

    constant - (t^2/2) (1/s^2 - 1/r^2) + log cosh(a t) - log cosh(b t),    a = e/s^2,  b = E/r^2,

an even function, and concave in t^2: the derivative of log cosh(a t) - log cosh(b t) with respect to t^2 is the
integral over c from b to a of (tanh z + z/cosh^2 z) c/(2 z) at z = c abs(t), and both tanh(z)/z and 1/cosh^2 z fall.
(b < a, since E < e and s <= r.)  So, for abs(t) rising from 0, the difference of the laws of abs(t) has the signs -, +,
- or the end of this sequence; the last sign is -, because s < r.  Let D(y) be the difference of the profiles at x = log
y, for y >= 1.  A profile is the expected value of (1 - y e^-t)^+ under the law of t; in terms of abs(t) = u with law h,
that is the integral over e^u > y of (e^u - y)/(1 + e^u) h(u) du.  Hence D'' has the sign of the difference of the laws
at u = log y, D and D' vanish at infinity, D(1) = 0 by the equation, and D'(1) = 0, since both laws have mass 1 and (e^u
- 1)/(1 + e^u) = 1 - 2/(1 + e^u).  On the first piece D is concave from D(1) = D'(1) = 0, so D <= 0; on the last it is
concave with D' -> 0 at infinity, so it rises to its limit 0, and D <= 0; in between it is convex and at most 0 at both
ends, so D <= 0.  []

The residue of a mechanism with bounded range e (:mod:`dpnb.accounting.conversions.pure`) is that of an a-DP mechanism,
a = e/2.

Proof.  By item 1 of that module it is enough to look at pairs of two outcomes with the log ratios t and t - e, for
every t from 0 to e; t = a is RR(a), so the residue cannot be larger.  Let RR(a) (x) G_s >= G_r with s > 0 (s = 0 is
item 3 there).  With G_s, the pair t has the profile p delta_s(x - t) + (1 - p) delta_s(x - t + e), for every real x,
with p = (1 - e^(t - e))/(1 - e^-e).  For a fixed y = x - t + a, t = x - y + a, it is linear in K = e^x: it is A - B K
with B = g(y), A = 1 - g(-y), and ::

    g(y) = e^-y (delta_s(y - a) - delta_s(y + a))/(2 sinh a) = P(V - s^2/2 + s Z > y),

Z normal, V with the density e^-v/(2 sinh a) from -a to a.  The profile of G_r is a convex function of K, and its
tangent with the slope -B meets K = 0 at Phi(Phi^-1(B) + r).  If A is at most that, the line is below the profile,
whether its t are from 0 to e or not.  So every pair has at least G_r if, for all y, r >= h(y) + h(-y) with h =
Phi^-1(1 - g).  At y = 0 that is the equation above, for e = a and E = 0.  What remains is the following lemma.

Lemma.  h(y) + h(-y) falls for y > 0.

Write T for s^2, ' for the derivative by y, and, at a point y > 0, p = h'(y), q = h'(-y), d = log(q/p).  The derivative
of h(y) + h(-y) is p - q, so the claim is d >= 0.  The law of V - T/2 + sqrt(T) Z has the distribution function F =
Phi(h) and the density f, with dF/dT = (F'' + F')/2.  Hence ::

    2 dh/dT = h'' - h h'^2 + h',
    2 dk/dT = k'' + (1 - 2 h h') k' - (5 h'^2 + 2 h k) k                                 for k = h'',          (1)
    2 dd/dT = d'' + (1 - d' - 2 h(y) p) d' - p^2 (e^(2 d) - 1) + 2 l w,                                        (2)
    l = (log q)' = -k(-y)/q,    w = (log(f(-y)/f(y)))' - 1 = h(y) p + h(-y) q + d' - 1.

w >= 0: f is e^(-y/2) times a function m which, up to a factor, is the convolution of e^(v/2) f_V(v) with N(0, T).  So
log(f(-y)/f(y)) - y = log(m(-y)/m(y)), which rises at T = 0, and convolution with a normal density, which is
log-concave, keeps a ratio rising (Karlin 1968, *Total Positivity*).

Let at T = 0: k <= 0 for y < 0, d >= 0 for y > 0, and d' > 0 at 0.  There d = 0, and d' = -2 k/h'.  As long as d'(0) >=
0, k(0) <= 0, so by the maximum principle for (1) on y < 0, where its last coefficient, at most -2 h k, is bounded from
above, also k <= 0 there, and l >= 0 for y > 0.  Then (2) is a linear parabolic equation on y > 0 for d, with the
coefficient -p^2 (e^(2 d) - 1)/d <= 0 and a source 2 l w >= 0, and d = 0 at y = 0: so d > 0 by the strong principle, and
d'(0) > 0 by Hopf's lemma.  So there is no first T with d'(0) = 0, and d >= 0 for all T.

V itself, for 0 < y < a: logit F(y) + logit F(-y) = 2 a.  With u = logit Phi, q/p = u'(h(y))/u'(h(-y)), and h(y) >
abs(h(-y)), since u is odd and rises, so d > 0: u' is even and rises with abs(z) (item 3 of that module).  h' = (D -
F)/phi(h) with D = 1/(1 - e^(-2 a)), so k/h' = h h' - 1.  h h' is below 1 where h <= 0; where h > 0 it rises with h,
since phi/(D - Phi) < phi/(1 - Phi) < h + 1/h.  At y = 0, with P = F(0), D - P = P (1 - P)/(2 P - 1), so h h' < 1 says h
P (1 - P) < (2 P - 1) phi(h), which is N < 0 in item 3.  So k < 0 for y <= 0, and d'(0) > 0.

V has no density outside [-a, a], where h is infinite.  So replace its law outside [-b, b], 0 < b < a, and let b -> a in
the end, where h and its derivatives converge for every T > 0.  Let z = -h(-b).  Below -b let h be linear with a slope S
>= h'(-b), and above b let f(y) = f(-y) e^(-2 b - C (y - b)).  So k <= 0 for y < 0, and w >= 0 if C >= 1.  With R the
ratio of Q(.) to phi, the mass above b is right if R(z + C/S) phi(z) e^(-2 b) = 1 - F(b).  This determines C/S, which is
positive, since 1 - F(b) = integral of e^(-2 v) f(-v) from b to a < e^(-2 b) F(-b); S may be as large as C >= 1 needs.
Above b, then, 1 - F(y) = J P(Z > j) for j = S (y - b) + z + C/S and a constant J, and e^d = R(j)/R(h(y)).  R falls, so
d >= 0 says h(y) >= j, that is, J <= 1, everywhere above b if it does so at b, where d > 0: d does not jump there, since
f(-y)/f(y) and h do not.  Where h' jumps, by the same factor at -b and b, it is rounded off over a length so short that
d > 0 remains, with f(-y)/f(y) as it is and C so that the mass is 1.  Both tails of the law are those of a normal one
with the variance 1/S^2 + T: so d -> 0 above and h k -> 0 below, evenly in T, as the two principles need.  []
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

from dpnb.accounting.conversions.directed import context, fraction, real
from dpnb.accounting.conversions.pure import mu_from_pure
from dpnb.accounting.exact import Number, decimal_up, exact, non_negative

# No session has use for a larger epsilon: it is refused.
_LARGE = 100_000
# How often the equation is solved for several mechanisms.
_AT_ONCE = 32
_BITS, _FAR, _ROUNDS, _SETTLED, _INSIDE = 64, 400, 100, Fraction(1, 2**36), 1 - Fraction(1, 10**6)


def residue_charge(
    epsilon: Number, *, mu_squared: Number, pure_epsilon: Number = 0, count: int = 1, is_range: bool = False
) -> Fraction | None:
    """The smallest charge in mu squared such that an epsilon-DP mechanism leaves the rest of a GDP budget.

    For several equal mechanisms, one after another, it is the sum of their charges, each at the residue of the one
    before, or that of one mechanism with the sum of their epsilons, if that is less.

    Parameters
    ----------
    epsilon : Number
        At least 0; a float means its shortest decimal.
    mu_squared : Number
        The square of the GDP budget that is left, at least 0.  The charge is also valid, and larger than necessary, for
        every larger budget.
    pure_epsilon : Number, default 0
        The reserve in pure DP that is left, all of which the mechanism uses.  The charge is also valid for every
        larger reserve that it reduces by this much.
    count : int, default 1
        The number of mechanisms, each of which is epsilon/count-DP whatever the answers of the ones before.
    is_range : bool, default False
        Whether epsilon is the range of a bounded range, or the sum of the ranges; they use nothing of the reserve.

    Returns
    -------
    Fraction or None
        At most `mu_squared`, a double in its decimal meaning, rounded up; None if the budget does not cover epsilon.
        0 if `pure_epsilon` covers it.

    Raises
    ------
    InvalidValueError
        A number is negative, not finite or not a number.

    Notes
    -----
    Let c be the charge at the budget r with the reserve E.  For R >= r, composing both sides of
    RR(epsilon) (x) G_sqrt(r^2 - c) >= RR(E) (x) G_r with G_sqrt(R^2 - r^2) gives the same inequality at R with the
    same c.  For a reserve E + a, compose both sides with RR(a); the right side is then at least RR(E + a) (x) G_r,
    since an E-DP and an a-DP mechanism together are (E + a)-DP, and a is left.

    Several mechanisms: the first ones take their epsilons from the reserve while that covers them, the next one takes
    what is left of it, and each of the others is charged alone.  By the claim of the module all of them together are
    within the sum of these charges, whatever the later ones are chosen by, so the whole sum can be added before the
    first of them runs.  Beyond 32 mechanisms the charge of several in a row is that of the last of them, computed where
    each of them took as much as its conversion to GDP, the most that it can be charged: by the first note it is valid
    for each.

    Bounded ranges are charged one after another, each as a mechanism with half of its range in pure DP.  Together they
    are no bounded range of the sum: the interval of a later one may depend on the answer of an earlier one.

    References
    ----------
    .. [1] The equation and its proof are in the docstring of :mod:`dpnb.accounting.conversions.residue`.

    Examples
    --------
    >>> from dpnb.accounting import Budget
    >>> from dpnb.accounting.conversions import mu_from_pure, residue_charge
    >>> budget = Budget(epsilon=1, delta=1e-6).loss.mu_squared
    >>> round(1 - float(residue_charge(0.1, mu_squared=budget) / budget), 3)
    0.815
    >>> round(1 - mu_from_pure(0.1) ** 2 / float(budget), 2)  # converted to GDP before it is charged
    0.72
    """
    e, reserve = non_negative(epsilon, name="epsilon"), non_negative(pure_epsilon, name="pure_epsilon")
    budget = non_negative(mu_squared, name="mu_squared")
    if is_range:
        return _charge_one_by_one(e / 2, budget, Fraction(0), count)
    charges = [_charge(e, budget, reserve), _charge_one_by_one(e, budget, reserve, count) if count > 1 else None]
    return min([charge for charge in charges if charge is not None], default=None)


@lru_cache(maxsize=4096)
def _charge_one_by_one(epsilon: Fraction, budget: Fraction, reserve: Fraction, count: int) -> Fraction | None:
    each = epsilon / count
    inside = int(min(reserve // each, count)) if each else count
    reserve, count, total, most = reserve - inside * each, count - inside, Fraction(0), exact(mu_from_pure(each)) ** 2
    at_once = -(-count // _AT_ONCE)
    while count and total <= budget:
        here = 1 if reserve else min(at_once, count)
        last = budget - total - (here - 1) * most
        charge = _charge(each, last, reserve) if last >= 0 else None
        total += here * (most if charge is None else charge)
        reserve, count = Fraction(0), count - here
    return total if total <= budget else None


@lru_cache(maxsize=4096)
def _charge(epsilon: Fraction, budget: Fraction, reserve: Fraction) -> Fraction | None:
    if epsilon <= reserve:
        return Fraction(0)
    state = _ChargeEquation(epsilon, budget, reserve)
    if epsilon > _LARGE or not state.is_enough(budget):
        return None

    # Converted to GDP, whatever is left, the mechanism leaves at most its residue.
    low, high = 0.0, decimal_up(min(budget, exact(mu_from_pure(epsilon)) ** 2))
    for near in _around(state.guess()):
        if low < near < high:
            low, high = (low, near) if state.is_enough(exact(near)) else (near, high)
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if state.is_enough(exact(middle)) else (middle, high)
    return min(exact(high), budget)


def _around(guess: float) -> tuple[float, float, float, float]:
    """Doubles beside a guess, the nearest first: mostly one of the first two is the charge."""
    return math.nextafter(guess, 0.0), math.nextafter(guess, math.inf), guess * (1 - 2**-51), guess * (1 + 2**-51)


@dataclass(frozen=True)
class _ChargeEquation:
    """The equation for one mechanism and one budget.

    Both sides are computed from 1 - delta, which is a sum of positive terms: under a large budget it is far below the
    precision of delta, and a difference would lose it.  An error of one unit in the last place of x/m changes each of
    the terms, relatively, by at most 16 (b + 2)^2 units (:mod:`dpnb.accounting.conversions.gaussian`).  Changing the
    charge by one unit in the last place of a double changes the left side by at least about e^2 2^-60 of its size, as
    long as delta is not negligible.  So with these precisions the margin is far above the errors, and below what a
    double can show.
    """

    epsilon: Fraction
    budget: Fraction
    reserve: Fraction
    # The same for all charges, by the precision: the right side, and the factor with which the left one has its margin.
    _right: dict[int, Any] = field(default_factory=dict, compare=False)
    _factors: dict[int, Any] = field(default_factory=dict, compare=False)

    def is_enough(self, charge: Fraction) -> bool:
        """Whether the left side of the equation, with s^2 = r^2 - charge, is at least the right one, with a margin."""
        ctx, kept, needed = self._sides(charge)
        if ctx.prec not in self._factors:
            self._factors[ctx.prec] = 1 - ctx.ldexp(1, -self._margin_bits(ctx))
        return bool(kept * self._factors[ctx.prec] >= needed)

    def guess(self) -> float:
        """The charge by Newton's method for the logarithm of the left side, first in doubles; only a proposal."""
        charge = self._near(exact(mu_from_pure(self.epsilon)) ** 2)
        for _ in range(_ROUNDS):
            charge = min(charge, self.budget * _INSIDE)
            ctx, kept, needed = self._sides(charge)
            s, e = ctx.sqrt(real(ctx, self.budget - charge)), real(ctx, self.epsilon)
            slope = ctx.npdf(e / s - s / 2) / s / (1 + ctx.exp(e)) / kept if kept > 0 else 0
            if not slope:
                break
            before, charge = charge, max(charge - fraction(ctx.log(kept / needed) / slope), charge / 2)
            if abs(charge - before) <= _SETTLED * before:  # what is left is about its square
                break
        return float(charge)

    def _near(self, start: Fraction) -> Fraction:
        """The same steps in doubles, until they no longer improve; `start` where doubles over- or underflow."""
        from scipy.special import log_ndtr  # imported when first used

        def kept(epsilon: float, square: float) -> float:
            """The logarithm of a side, but for a constant."""
            mu = math.sqrt(square)
            first, second = float(log_ndtr(epsilon / mu - mu / 2)), epsilon + float(log_ndtr(-epsilon / mu - mu / 2))
            return first + math.log1p(math.exp(second - first)) - math.log1p(math.exp(epsilon))

        e, budget = float(self.epsilon), float(self.budget)
        if not (1e-6 < e < 700 and 1e-12 < budget < 1e6):
            return start
        needed, charge = kept(float(self.reserve), budget), float(start)
        for _ in range(50):
            left = budget - min(charge, budget * float(_INSIDE))
            s, here = math.sqrt(left), kept(e, left)
            slope = math.exp(-((e / s - s / 2) ** 2) / 2 - here) / math.sqrt(2 * math.pi) / s / (1 + math.exp(e))
            if not 1e-300 < slope < 1e300:
                return start
            before, charge = budget - left, max(budget - left - (here - needed) / slope, (budget - left) / 2)
            if abs(charge - before) <= 1e-9 * before:
                return exact(charge)
        return start

    def _margin_bits(self, ctx: Any) -> int:
        return 120 + 2 * int(max(-ctx.log(real(ctx, self.epsilon), 2), 0))

    def _width(self, ctx: Any, square: Fraction) -> Any:
        """The logarithm of the terms' condition for a mu with this square."""
        return ctx.log(real(ctx, self.epsilon) ** 2 / real(ctx, square) + real(ctx, square) + 4, 2)

    @cached_property
    def _of_budget(self) -> tuple[int, list[Any]]:
        """The bits of the margin, and the width for the whole budget unless it is 0."""
        ctx = context()
        ctx.prec = _BITS
        return self._margin_bits(ctx), [self._width(ctx, self.budget)] if self.budget else []

    def _sides(self, charge: Fraction) -> tuple[Any, Any, Any]:
        """A context with enough precision, and the two sides of the equation in it."""
        left = max(self.budget - charge, Fraction(0))
        ctx, (margin, widths) = context(), self._of_budget
        ctx.prec = _BITS
        widths = [*widths, self._width(ctx, left)] if left else widths
        ctx.prec = margin + 64 + 4 * int(max(widths, default=0))
        if ctx.prec not in self._right:
            self._right[ctx.prec] = _kept(ctx, self.reserve, self.budget)
        return ctx, _kept(ctx, self.epsilon, left), self._right[ctx.prec]


def _kept(ctx: Any, epsilon: Fraction, mu_squared: Fraction) -> Any:
    """A side of the equation."""
    e = real(ctx, epsilon)
    return _missed(ctx, e, ctx.sqrt(real(ctx, mu_squared))) * 2 / (1 + ctx.exp(e))


def _missed(ctx: Any, epsilon: Any, mu: Any) -> Any:
    """One minus the profile of mu-GDP at epsilon, as a sum of two positive terms, so that nothing cancels.

    1 where the profile is below every margin: where its exponent is beyond -80,000.
    """
    if not mu or epsilon / mu - mu / 2 > _FAR:
        return ctx.one
    root = ctx.sqrt(2)
    below, above = (mu / 2 - epsilon / mu) / root, (mu / 2 + epsilon / mu) / root
    return (ctx.erfc(below) + ctx.exp(epsilon) * ctx.erfc(above)) / 2
