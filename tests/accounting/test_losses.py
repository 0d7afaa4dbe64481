"""A loss is an exact value."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.exact import Number, exact
from dpnb.accounting.losses import GDP, RDP, ZCDP, ApproxDP, Loss, PointwiseDP, PureDP, loss_from_json
from dpnb.errors import ConversionError, DpnbError, InvalidValueError
from rationals import fractions

sizes = fractions(0, 1000, max_denominator=10**12)
squares = fractions(0, 10**6, max_denominator=10**12)
deltas = fractions(0, 1, max_denominator=10**9)
losses = st.builds(GDP.from_mu_squared, squares, deltas)
curves = st.dictionaries(sizes.map(lambda x: x + Fraction(101, 100)), sizes, min_size=1, max_size=4)
kinds = st.one_of(
    losses,
    st.builds(ZCDP, sizes, deltas),
    st.builds(RDP, curves, deltas),
    st.builds(PureDP, sizes),
    st.builds(ApproxDP, sizes, deltas),
    st.builds(PointwiseDP, sizes, deltas),
)


def test_equal_however_written() -> None:
    assert GDP(0.3) == GDP("0.3") == GDP("3/10") == GDP.from_mu_squared("0.09")
    assert hash(GDP(0.3)) == hash(GDP("3/10"))
    assert GDP(0.3) != GDP(Fraction(0.3))
    assert GDP(0.3) != GDP(0.3, delta=1e-9)


def test_loss_shows_what_was_written() -> None:
    assert repr(GDP(0.3)) == "GDP(mu=0.3)"
    assert repr(GDP("0.3", delta="1e-6")) == "GDP(mu=0.3, delta=1e-06)"


@given(losses)
def test_shown_mu_is_never_too_small(loss: GDP) -> None:
    assert exact(loss.mu) ** 2 >= loss.mu_squared


def test_mu_squared_and_delta_add() -> None:
    assert GDP(0.3, delta=0.1) + GDP(0.4, delta=0.2) == GDP(0.5, delta=0.3)
    assert sum([GDP("0.1")] * 100, start=GDP(0)) == GDP(1)


def test_rho_is_half_of_mu_squared() -> None:
    assert GDP(0.2).rho == Fraction(1, 50)


def test_free_release_costs_nothing() -> None:
    assert GDP(0) + GDP(0.7) == GDP(0.7)


def test_loss_does_not_add_to_a_bare_number() -> None:
    with pytest.raises(TypeError):
        GDP(1) + 1  # type: ignore[operator]


@given(losses, losses, losses)
def test_sum_is_exact_in_any_order(a: GDP, b: GDP, c: GDP) -> None:
    assert (a + b) + c == a + (c + b)
    assert (a + b).mu_squared == a.mu_squared + b.mu_squared


@given(kinds)
def test_stored_loss_is_read_back_exactly(loss: Loss) -> None:
    assert loss_from_json(loss.to_json()) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss == copy.deepcopy(loss)


def test_stored_loss_is_text() -> None:
    assert GDP(0.3).to_json() == {"kind": "gdp", "mu_squared": "9/100", "delta": "0"}
    assert RDP({2: 0.1, "2.5": 0.2}).to_json() == {"kind": "rdp", "2": "1/10", "5/2": "1/5"}


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "zcdp-of-tomorrow", "rho": "1"},
        {"kind": "gdp", "delta": "0"},
        {"kind": "gdp", "mu_squared": "0.09", "delta": "0"},
        {"kind": "gdp", "mu_squared": "-1", "delta": "0"},
        {"kind": "rdp"},
        {"kind": "rdp", "1": "1"},
        {"kind": "rdp", "two": "1"},
        {"kind": "zcdp", "rho": "1"},
        {"kind": "pure-dp", "epsilon": "1/10", "times": "3"},
    ],
)
def test_stored_loss_that_cannot_be_read_is_refused(stored: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError):
        loss_from_json(stored)


@pytest.mark.parametrize("bad", [-0.1, "-1/3", float("nan"), float("inf"), None, True, "much"])
def test_loss_that_is_no_size_is_refused(bad: Number) -> None:
    makers = (GDP, GDP.from_mu_squared, ZCDP, PureDP, ApproxDP, PointwiseDP, lambda rho: RDP({2: rho}))
    with_delta = (partial(kind, 1) for kind in (GDP, ZCDP, ApproxDP, PointwiseDP, lambda _, delta: RDP({2: 1}, delta)))
    for make in (*makers, *with_delta):
        with pytest.raises(DpnbError, match=r"^(mu|mu_squared|rho|epsilon|delta) must .*got"):
            make(bad)


def test_loss_cannot_be_changed_in_place() -> None:
    for name in ("parts", "delta", "mu_squared", "anything"):
        with pytest.raises(AttributeError):
            setattr(GDP(1), name, Fraction(0))
    with pytest.raises(AttributeError):
        RDP({2: 1}).orders = (Fraction(3),)  # type: ignore[misc]


def test_gdp_is_a_loss() -> None:
    assert isinstance(GDP(1), Loss)


@given(kinds, st.integers(1, 20))
def test_every_kind_adds_part_by_part_and_comes_apart_again(loss: Loss, times: int) -> None:
    total = loss
    for _ in range(times - 1):
        total = total + loss
    assert total.parts == tuple(times * part for part in loss.parts)
    assert loss.within(total)
    assert total - loss == total.with_parts(tuple((times - 1) * part for part in loss.parts))
    assert bool(loss) == any(loss.parts)


@given(kinds)
def test_shown_loss_is_never_below_the_loss(loss: Loss) -> None:
    shown = eval(repr(loss))  # the repr of a loss is the call that makes it
    assert loss.within(shown)


def test_losses_of_different_kinds_do_not_add() -> None:
    with pytest.raises(TypeError):
        GDP(1) + ZCDP(1)  # type: ignore[operator]
    with pytest.raises(TypeError):
        ApproxDP(1) - PureDP(1)  # type: ignore[operator]


def test_losses_of_different_kinds_are_not_compared() -> None:
    with pytest.raises(ConversionError, match="must be GDP, got ZCDP"):
        GDP(0.1).within(ZCDP(0.1))  # type: ignore[arg-type]


def test_renyi_losses_of_different_orders_neither_add_nor_compare() -> None:
    two, three = RDP({2: 0.1}), RDP({3: 0.1})
    for together in (lambda: two + three, lambda: two - three, lambda: two.within(three)):
        with pytest.raises(ConversionError, match="same orders"):
            together()


@pytest.mark.parametrize("small", [GDP(0.1), ZCDP(0.1), RDP({2: 0.1}), PureDP(0.1), ApproxDP(0.1, 0.1)])
def test_no_loss_is_negative(small: Any) -> None:
    negative = tuple(-part for part in small.parts)
    for make in (lambda: small - (small + small), lambda: small.with_parts(negative), lambda: GDP.of(*negative)):
        with pytest.raises(InvalidValueError, match="must not be negative, got -"):
            make()


def test_order_that_no_double_means_is_shown_exactly() -> None:
    assert repr(RDP({"7/3": 1})) == "RDP({'7/3': 1.0})"


def test_curve_is_the_same_in_any_order_and_spelling() -> None:
    assert RDP({8: 0.5, 2: 0.1}) == RDP({"2": "0.1", 8.0: Fraction(1, 2)})
    assert repr(RDP({8: 0.5, 2: 0.1})) == "RDP({2.0: 0.1, 8.0: 0.5})"


@pytest.mark.parametrize("curve", [{}, {1: 0.1}, {0.5: 0.1}, {2: 0.1, "2": 0.1}, {"two": 0.1}, [(2, 0.1)], None])
def test_curve_that_is_none_is_refused(curve: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^(curve|order) must"):
        RDP(curve)
