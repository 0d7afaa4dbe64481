"""Figures are shown with the digits their error leaves, and never to our advantage."""

from __future__ import annotations

import math

import pytest

from dpnb.accounting.losses import GDP
from dpnb.answer.faces import figure, price


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1234.567, 100, "1,235"),
        (1234.567, 0.5, "1,234.57"),
        (0.00123456, 0.0001, "0.00123"),
        (math.nan, 1, "unknown"),
        (math.inf, 1, "∞"),
        (5.0, 0, "5"),
        (5.0, math.inf, "5"),
    ],
)
def test_a_figure_has_the_digits_that_its_error_leaves(value: float, error: float, text: str) -> None:
    assert figure(value, error) == text


def test_a_price_is_rounded_up() -> None:
    assert price(GDP("0.123449"), 0.10001) == "mu 0.1235, 10.01% of the budget"
    assert price(GDP(0), 0).startswith("free")
