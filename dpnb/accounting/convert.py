"""Conversion of one kind of loss to another, where a theorem allows it.

==============  ==============================================================================================
to              from, and by which theorem
==============  ==============================================================================================
ApproxDP        GDP and PureGDP (Dong, Roth and Su 2022, Cor. 2.13), ZCDP and RDP (Canonne, Kamath and Steinke 2020,
                Prop. 12), PureDP and ApproxDP (randomised response of Kairouz, Oh and Viswanath 2015, Thm 3.1;
                with its own delta unless another is given), PointwiseDP (by definition)
ZCDP            GDP (Bun and Steinke 2016, Prop. 1.6), PureDP, ApproxDP, PointwiseDP (epsilon tanh(epsilon/2)
                of randomised response; a delta stays a delta)
GDP             PureDP, ApproxDP, PointwiseDP (randomised response lies above the curve of its mu)
RDP             GDP, ZCDP, PureDP, ApproxDP, PointwiseDP, and RDP of other orders ((a - 1) D_a is convex in a);
                a delta stays a delta, since one decomposition serves all orders
ZCDP, RDP       BoundedRange: the largest divergences (:mod:`dpnb.accounting.conversions.renyi`)
GDP             BoundedRange: the mu of range/2 in pure DP (:mod:`dpnb.accounting.conversions.pure`)
PureDP          ApproxDP and PointwiseDP without a delta
ZCDP, GDP, RDP  PureGDP: the sum of what its two mechanisms convert to; Repeated: `count` times what one converts to
any             any loss of 0
==============  ==============================================================================================

Conversions that are not listed are false or unknown.  ZCDP does not imply GDP for any mu, and RDP of finitely many
orders implies neither.  A loss with a delta has no finite Renyi divergences: its good part has, so it is approximate
Renyi DP with the same delta.

The weight of the bad part.  If both neighbours' outputs are, except for a part of weight d, (epsilon, x)-close, then
P(S) <= (1 - d) P'(S) + d <= e^epsilon Q(S) + (1 - d) x + d.  So a total delta leaves x = (delta - d)/(1 - d) for the
good part (Whitehouse et al. 2023, Lemma 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar

from dpnb.accounting.conversions import (
    epsilon_from_curve,
    epsilon_from_pure,
    epsilon_from_rho,
    epsilon_of_gdp,
    epsilon_of_pure_gdp,
    mu_from_pure,
    rdp_from_pure,
    rdp_from_range,
    rho_from_pure,
    rho_from_range,
)
from dpnb.accounting.conversions.directed import checked_delta
from dpnb.accounting.exact import Number, exact, shown
from dpnb.accounting.losses import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    EpsilonLoss,
    Loss,
    PointwiseDP,
    PureDP,
    PureGDP,
)
from dpnb.errors import ConversionError, InvalidValueError

L = TypeVar("L", bound=Loss)


def convert(loss: Loss, to: type[L], *, delta: Number | None = None, orders: Iterable[Number] | None = None) -> L:
    """Convert a loss to the smallest loss of another kind that a theorem proves, rounded up.

    Parameters
    ----------
    loss : Loss
        The loss to convert.
    to : type
        ``GDP``, ``ZCDP``, ``RDP``, ``PureDP`` or ``ApproxDP``.
    delta : Number, optional
        The delta of the resulting ApproxDP, at least the delta of `loss` and below 1.  Required if `loss` is a GDP,
        ZCDP or RDP.
    orders : iterable of Number, optional
        The orders of the resulting RDP, each above 1.  Required unless `loss` is an RDP, whose orders are the default.

    Returns
    -------
    Loss
        Of type `to`; no component is smaller than the theorem's.  It keeps the delta of `loss`, if that has one.

    Raises
    ------
    ConversionError
        No theorem proves the conversion, or a required argument is missing.
    InvalidValueError
        delta or an order is out of range or not a number.

    Examples
    --------
    >>> convert(GDP(1), ZCDP), convert(ZCDP(0.5), RDP, orders=[2, 8])
    (ZCDP(rho=0.5), RDP({2.0: 1.0, 8.0: 4.0}))
    """
    target: object = to
    if not isinstance(target, type):
        raise ConversionError(f"to: must be a kind of loss such as ZCDP, got {shown(target)}; give the class")
    converted = _converted(loss, to, delta, orders)
    if not isinstance(converted, to):
        name = getattr(to, "__name__", shown(to))
        raise ConversionError(
            f"loss: no theorem converts {_named(loss)} to {name}; use a filter or odometer that accepts it unconverted"
        )
    return converted


def group_privacy(loss: L, size: int) -> L:
    """The loss of a group of units together; replacing one unit is a group of two.

    Parameters
    ----------
    loss : GDP, ZCDP or PureDP
        The loss of one unit, without a delta.
    size : int
        Number of units in the group, at least 1.

    Returns
    -------
    Loss
        Of the same type as `loss`.

    Raises
    ------
    ConversionError
        `loss` is of another type, or has a delta.
    InvalidValueError
        size is not a whole number of at least 1.

    References
    ----------
    .. [1] Dong, Roth and Su 2022, Theorem 2.14 (k mu); Bun and Steinke 2016, Prop. 1.9 (k^2 rho); k epsilon.

    Examples
    --------
    >>> from dpnb.accounting import GDP, group_privacy
    >>> group_privacy(GDP(0.5), 3)
    GDP(mu=1.5)
    """
    whole: object = size
    if isinstance(whole, bool) or not isinstance(whole, int) or whole < 1:
        raise InvalidValueError(f"size must be a whole number of at least 1, got {shown(size)}; give a group's size")
    kind = type(loss)
    if kind not in (GDP, ZCDP, PureDP) or loss.delta:
        raise ConversionError(
            f"loss: group privacy is counted for GDP, ZCDP and PureDP without a delta, got {_named(loss)}"
        )
    factor = size if kind is PureDP else size**2
    return loss.with_parts(tuple(factor * part for part in loss.parts))


def own_epsilon_delta(loss: Loss) -> tuple[Fraction, Fraction]:
    """The epsilon and delta of a loss that has both without a conversion.

    Raises `ConversionError` for another loss, since the delta of the conversion must be chosen beforehand.
    """
    if isinstance(loss, EpsilonLoss):
        return loss.epsilon, loss.delta
    if isinstance(loss, GDP | ZCDP | RDP) and not loss:
        return Fraction(0), Fraction(0)
    raise ConversionError(
        f"loss: only PureDP, ApproxDP and PointwiseDP have an epsilon, got {_named(loss)}; "
        "give convert(loss, ApproxDP, delta=...) with a delta chosen beforehand"
    )


def good_delta(delta: Fraction, own: Fraction) -> Fraction | None:
    """The delta that a total delta leaves for the good part, of weight 1 - `own`; None if it does not cover `own`."""
    return (delta - own) / (1 - own) if own <= delta and own < 1 else None


def _converted(loss: object, to: type[Loss], delta: Number | None, orders: Iterable[Number] | None) -> Loss | None:
    if not isinstance(loss, Loss):
        return None
    if not loss:
        return _free(loss, to, delta, orders)
    if to is ApproxDP:
        return _approx(loss, delta)
    if loss.count > 1 and to in (ZCDP, GDP, RDP):  # which are sums, also for mechanisms that are chosen adaptively
        once = _converted(loss.once, to, delta, orders)
        return None if once is None else once.with_parts(tuple(loss.count * part for part in once.parts))
    if to is RDP:
        return _rdp(loss, orders)
    if isinstance(loss, to):
        return loss
    if to is ZCDP:
        return _zcdp(loss)
    if to is GDP:
        return _gdp(loss)
    return PureDP(loss.epsilon) if to is PureDP and isinstance(loss, EpsilonLoss) and not loss.delta else None


def _free(loss: Loss, to: type[Loss], delta: Number | None, orders: Iterable[Number] | None) -> Loss | None:
    """A loss of 0 is 0 in every kind: the outputs do not differ at all."""
    if to is RDP:
        return loss if orders is None and isinstance(loss, RDP) else _free_at(loss, orders)
    if to is ApproxDP:
        return ApproxDP(0, checked_delta(delta) if delta is not None else 0)
    kind = next((kind for kind in (GDP, ZCDP, PureDP, PointwiseDP) if to is kind), None)
    return kind(0) if kind else loss if isinstance(loss, to) else None


def _approx(loss: Loss, delta: Number | None) -> Loss | None:
    if delta is None:
        if isinstance(loss, EpsilonLoss):
            return ApproxDP(loss.epsilon, loss.delta)
        if isinstance(loss, GDP | ZCDP | RDP | PureGDP):
            raise ConversionError(f"delta: required to convert {_named(loss)} to ApproxDP; give for example delta=1e-6")
        return None
    total = checked_delta(delta)
    good = good_delta(total, loss.delta)
    if good is None:
        raise ConversionError(
            f"delta: must be at least the loss's own delta, got {shown(delta)} for {_named(loss)}; give a larger delta"
        )
    epsilon = _epsilon(loss, good)
    if epsilon == float("inf"):
        raise ConversionError(f"delta: {shown(delta)} is too small to convert {_named(loss)}; give a larger delta")
    return None if epsilon is None else ApproxDP(epsilon, total)


def _epsilon(loss: Loss, delta: Fraction) -> Any:
    if isinstance(loss, GDP):
        return epsilon_of_gdp(loss.mu_squared, delta)
    if isinstance(loss, PureGDP):
        return epsilon_of_pure_gdp(loss.epsilon, loss.mu_squared, delta)
    if isinstance(loss, ZCDP):
        return epsilon_from_rho(loss.rho, delta=delta)
    if isinstance(loss, RDP):
        # One release and a curve that was fixed beforehand: the bound of every order holds, so the smallest does.
        return epsilon_from_curve(loss.curve, delta)
    if isinstance(loss, EpsilonLoss):
        return epsilon_from_pure(loss.epsilon, delta=delta) if delta else loss.epsilon
    return None


def _zcdp(loss: Loss) -> ZCDP | None:
    if isinstance(loss, GDP):
        return ZCDP.of(loss.rho, loss.delta)
    if isinstance(loss, BoundedRange):
        return ZCDP.of(_rho_of_range(loss.epsilon), Fraction(0))
    if isinstance(loss, EpsilonLoss):
        return ZCDP.of(_rho_of_pure(loss.epsilon), loss.delta)
    if isinstance(loss, PureGDP):
        return ZCDP.of(_rho_of_pure(loss.epsilon) + loss.mu_squared / 2, loss.delta)
    return None


def _gdp(loss: Loss) -> GDP | None:
    if isinstance(loss, EpsilonLoss):
        worst = loss.epsilon / 2 if isinstance(loss, BoundedRange) else loss.epsilon
        return GDP.of(_mu_squared_of_pure(worst), loss.delta)
    if isinstance(loss, PureGDP):
        return GDP.of(_mu_squared_of_pure(loss.epsilon) + loss.mu_squared, loss.delta)
    return None


def _rdp(loss: Loss, orders: Iterable[Number] | None) -> RDP | None:
    if isinstance(loss, RDP):
        if orders is None:
            return loss
        free = _free_at(loss, orders)
        return free.with_parts((*[_between(loss, order) for order in free.orders], loss.delta))
    if isinstance(loss, PureGDP):
        parts = (PureDP(loss.epsilon), GDP.of(loss.mu_squared, loss.delta))
        pure, gaussian = (_rdp(part, orders) for part in parts)
        return pure + gaussian if pure is not None and gaussian is not None else None
    if not isinstance(loss, GDP | ZCDP | EpsilonLoss):
        return None
    free = _free_at(loss, orders)
    if isinstance(loss, GDP | ZCDP):
        n, d = loss.rho.as_integer_ratio()
        rhos = [Fraction(order.numerator * n, order.denominator * d) for order in free.orders]
    else:
        at_order = _rdp_of_range if isinstance(loss, BoundedRange) else _rdp_of_pure
        rhos = [at_order(loss.epsilon, order=order) for order in free.orders]
    return free.with_parts((*rhos, loss.delta))


@lru_cache(maxsize=1024)
def _zero(orders: tuple[Fraction, ...]) -> RDP:
    return RDP(dict.fromkeys(orders, 0))


@lru_cache(maxsize=4096)
def _rho_of_pure(epsilon: Fraction) -> Fraction:
    return exact(rho_from_pure(epsilon))


@lru_cache(maxsize=4096)
def _mu_squared_of_pure(epsilon: Fraction) -> Fraction:
    return exact(mu_from_pure(epsilon)) ** 2


@lru_cache(maxsize=4096)
def _rdp_of_pure(epsilon: Fraction, order: Fraction) -> Fraction:
    return exact(rdp_from_pure(epsilon, order=order))


_rho_of_range = lru_cache(maxsize=4096)(rho_from_range)
_rdp_of_range = lru_cache(maxsize=4096)(rdp_from_range)


def _free_at(loss: Loss, orders: Iterable[Number] | None) -> RDP:
    """A loss of 0 at these orders; the result is cached, so equal orders are checked and sorted only once."""
    if orders is None:
        raise ConversionError(f"orders: required to convert {_named(loss)} to RDP; give for example orders=[2, 8, 32]")
    try:
        checked = tuple([exact(order, name="order") for order in orders])
        free = _zero(checked)
        if len(free.orders) < len(checked):
            raise InvalidValueError("an order was given twice")
        return free
    except (TypeError, InvalidValueError) as error:
        raise InvalidValueError(
            f"orders must be different numbers above 1, at least one, got {shown(orders)}; give for example [2, 8, 32]"
        ) from error


def _between(loss: RDP, order: Fraction) -> Fraction:
    """The loss at another order: (a - 1) D_a is convex in a and 0 at a = 1, so it lies below its chords."""
    below, at_below = Fraction(1), Fraction(0)
    # Divergences rise with the order, so the bound at a higher order also holds at lower ones.
    least = accumulate((rho for _, rho in reversed(loss.curve)), min)
    for above, rho in zip(loss.orders, reversed(list(least)), strict=True):
        at_above = (above - 1) * rho
        if order <= above:
            return (at_below + (at_above - at_below) * (order - below) / (above - below)) / (order - 1)
        below, at_below = above, at_above
    raise ConversionError(
        f"orders: must not exceed the largest order of the loss, got {shown(float(order))} for {_named(loss)}; "
        "give smaller orders"
    )


def _named(loss: object) -> str:
    return repr(loss) if isinstance(loss, Loss) else f"{type(loss).__name__}, which is not a loss"
