"""A loss is an exact value."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.exact import Number, exact
from dpnb.accounting.losses import GDP, Loss, loss_from_json
from dpnb.errors import DpnbError, InvalidValueError

squares = st.fractions(min_value=0, max_value=10**6, max_denominator=10**12)
losses = st.builds(GDP.from_squared, squares, st.fractions(min_value=0, max_value=1, max_denominator=10**9))


def test_equal_however_written() -> None:
    assert GDP(0.3) == GDP("0.3") == GDP("3/10") == GDP.from_squared("0.09")
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


@given(losses)
def test_stored_loss_is_read_back_exactly(loss: GDP) -> None:
    assert loss_from_json(loss.to_json()) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss == copy.deepcopy(loss)


def test_stored_loss_is_text() -> None:
    assert GDP(0.3).to_json() == {"kind": "gdp", "mu_squared": "9/100", "delta": "0"}


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "zcdp-of-tomorrow", "rho": "1"},
        {"kind": "gdp", "delta": "0"},
        {"kind": "gdp", "mu_squared": "0.09", "delta": "0"},
        {"kind": "gdp", "mu_squared": "-1", "delta": "0"},
    ],
)
def test_stored_loss_that_cannot_be_read_is_refused(stored: dict[str, str]) -> None:
    with pytest.raises(InvalidValueError):
        loss_from_json(stored)


@pytest.mark.parametrize("bad", [-0.1, "-1/3", float("nan"), float("inf"), None, True, "much"])
def test_loss_that_is_no_size_is_refused(bad: Number) -> None:
    for make in (GDP, GDP.from_squared, lambda value: GDP(1, delta=value)):
        with pytest.raises(DpnbError, match=r"^(mu|mu_squared|delta) must .*got"):
            make(bad)


def test_loss_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        GDP(1).delta = Fraction(0)  # type: ignore[misc]


def test_gdp_is_a_loss() -> None:
    assert isinstance(GDP(1), Loss)
