"""A measurement is integers on a power-of-two grid; reading it as doubles or JSON loses nothing that it need not."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpnb.errors import InvalidValueError
from dpnb.mechanisms.measurement import Measurement

integers = st.integers(-(2**300), 2**300) | st.integers(-(2**55), 2**55)


@given(values=st.lists(integers), exponent=st.integers(-1100, 1003), sigma=st.floats(5e-324, 1.7e308))
def test_json_round_trip_is_exact(values: list[int], exponent: int, sigma: float) -> None:
    measurement = Measurement(tuple(values), exponent, sigma)
    assert Measurement.from_json(json.loads(json.dumps(measurement.to_json()))) == measurement


@given(values=st.lists(integers, max_size=5), exponent=st.integers(-1200, 700))
@example(values=[2**53 - 1, 3, -1], exponent=-1075)  # halfway between subnormal doubles
@example(values=[2**60 + 1], exponent=-1100)
def test_floats_are_the_nearest_doubles(values: list[int], exponent: int) -> None:
    floats = Measurement(tuple(values), exponent, 1.0).to_floats()
    assert floats.dtype == np.float64
    assert floats.shape == (len(values),)
    for value, given_float in zip(values, floats.tolist(), strict=True):
        truth = value * Fraction(2) ** exponent
        distance = abs(Fraction(given_float) - truth)
        for neighbour in (math.nextafter(given_float, -math.inf), math.nextafter(given_float, math.inf)):
            if math.isfinite(neighbour):
                assert distance <= abs(Fraction(neighbour) - truth)


@pytest.mark.parametrize("value", [2**10, 2**60, 2**2000])
def test_floats_beyond_the_doubles_are_infinite(value: int) -> None:
    assert Measurement((value, -value), 1020, 1e300).to_floats().tolist() == [math.inf, -math.inf]


def test_measurement_cannot_be_changed() -> None:
    measurement = Measurement((1,), 0, 1.0)
    with pytest.raises(AttributeError):
        measurement.sigma = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"values": ["1"], "exponent": 0},
        {"values": ["x"], "exponent": 0, "sigma": "0x1p+0"},
        {"values": 3, "exponent": 0, "sigma": "0x1p+0"},
        {"values": ["1"], "exponent": "a", "sigma": "0x1p+0"},
        {"values": ["1"], "exponent": 0, "sigma": "wide"},
        {"values": ["1"], "exponent": 0, "sigma": 1.0},
        {"values": ["1"], "exponent": 0, "sigma": "0x1p+5000"},
    ],
)
def test_spoilt_json_is_a_typed_error(stored: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="measurement: the stored form must have values, exponent and sigma"):
        Measurement.from_json(stored)
