"""The base class of all odometers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.frozen import Frozen
from dpnb.accounting.losses import Loss
from dpnb.copying import safe_repr

OdometerKind = Literal["time-uniform", "accumulator"]


@dataclass(frozen=True, init=False, repr=False)
class Odometer(Frozen):
    """Base class of all odometers; every odometer is frozen.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPAccumulator, Odometer
    >>> isinstance(GDPAccumulator(), Odometer)
    True
    >>> GDPAccumulator().step(GDP(0.3)).step(GDP(0.4)).bound
    0.5
    """

    #: The measure that is bounded: "epsilon", "rho", "mu", "rdp" or "spent".
    measure: ClassVar[str]
    _reading: ClassVar[str] = ""

    @property
    def kind(self) -> OdometerKind:
        """The meaning of the bound: ``"time-uniform"`` or ``"accumulator"``."""
        raise NotImplementedError

    @property
    def bound(self) -> float:
        """The current bound, in nats (mu has no unit), rounded up; infinite where nothing is proved."""
        raise NotImplementedError

    def step(self, loss: Loss) -> Self:
        """The odometer after the loss; a loss counts from the launch of its release, before the answer is seen.

        Parameters
        ----------
        loss : Loss
            The loss of one release.

        Raises
        ------
        ConversionError
            The odometer cannot count the loss.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPAccumulator, MixtureOdometer
        >>> GDPAccumulator().step(GDP(mu="0.5")).bound
        0.5
        >>> round(MixtureOdometer.tuned(v=1, delta=1e-6).step(GDP(mu=1)).bound, 3)
        6.038
        """
        raise NotImplementedError

    def after_repeated(self, loss: Loss, count: int) -> Self:
        """The odometer after equal losses.

        Parameters
        ----------
        loss : Loss
            The loss of one release.
        count : int
            The number of releases.
        """
        return self.step(loss.with_parts(tuple(count * part for part in loss.parts)))

    def statement(self) -> str:
        """The reading in words; all numbers are rounded in the safe direction.

        Examples
        --------
        >>> from dpnb.accounting import GDP, MixtureOdometer
        >>> print(MixtureOdometer.tuned(v=1, delta=1e-6).step(GDP(mu=1)).statement())
        With confidence 99.9999%, the privacy loss so far is at most 6.038, at whatever moment you look.
        """
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The reading in few words, for example ``mu 0.5``."""
        bound = self.bound
        return f"{self._reading or self.measure} {display_up(bound)}" if bound < math.inf else "unbounded"

    @safe_repr
    def __repr__(self) -> str:
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        shown = ((name, decimal_up(value) if isinstance(value, Fraction) else value) for name, value in pairs)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"
