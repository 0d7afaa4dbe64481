"""The result that a mechanism releases: integers on a grid whose spacing is a power of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpnb.errors import InvalidValueError

# Doubles hold every integer up to here.
_EXACT_DOUBLE = 1 << 53


@dataclass(frozen=True, slots=True)
class Measurement:
    """Noisy sums: the value of cell i is ``values[i] * 2**exponent``.

    `exponent` depends on `sigma` alone, the standard deviation of the noise in the units of the sums, whose literal
    binary value counts.  All fields are released; they contain no more information than the output of the ideal
    Gaussian mechanism.

    >>> noisy = Measurement(values=(12, -7), exponent=-2, sigma=1.5)
    >>> noisy.to_floats()
    array([ 3.  , -1.75])
    """

    values: tuple[int, ...]
    exponent: int
    sigma: float

    def to_floats(self) -> NDArray[np.float64]:
        """The double nearest to each cell's value, in the units of the sums; infinite beyond the range of doubles."""
        try:
            integers = np.array(self.values, dtype=np.int64)
            is_exact = bool(((integers >= -_EXACT_DOUBLE) & (integers <= _EXACT_DOUBLE)).all())
        except OverflowError:  # one needs more than 64 bits
            is_exact = False
        if is_exact:
            # Exact integers, so `ldexp` rounds at most once (when the result is subnormal).
            with np.errstate(over="ignore", under="ignore"):
                return np.asarray(np.ldexp(integers.astype(np.float64), self.exponent))
        return np.array([_nearest_double(value, self.exponent) for value in self.values], dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        """A JSON-safe form, from which `from_json` restores an equal measurement.

        ``values`` are decimal texts, since JSON readers lose integers above 2**53; ``sigma`` is a hexadecimal text.
        """
        return {
            "values": [str(value) for value in self.values],
            "exponent": self.exponent,
            "sigma": self.sigma.hex(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measurement:
        """The measurement that `to_json` wrote; raises `InvalidValueError` if a key is missing or no number."""
        try:
            values = tuple(map(int, data["values"]))
            exponent = int(data["exponent"])
            sigma = float.fromhex(data["sigma"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidValueError(
                f"measurement: the stored form must have values, exponent and sigma as numbers; "
                f"got {type(error).__name__} while reading it; restore the file from before it was edited"
            ) from None
        return cls(values, exponent, sigma)


def _nearest_double(value: int, exponent: int) -> float:
    """``value * 2**exponent``, rounded once; Python's int-to-float conversion and int division round correctly."""
    try:
        return float(value << exponent) if exponent >= 0 else value / (1 << -exponent)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
