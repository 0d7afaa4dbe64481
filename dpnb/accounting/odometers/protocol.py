"""What every odometer can do, and what all of them share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

from dpnb.accounting.exact import decimal_up
from dpnb.accounting.frozen import Frozen
from dpnb.accounting.losses import Loss
from dpnb.copying import safe_repr

__all__ = ["Odometer", "OdometerKind", "OdometerState"]

OdometerKind = Literal["time-uniform", "accumulator"]


@runtime_checkable
class Odometer(Protocol):
    """What every odometer can do; all odometers are frozen.

    Examples
    --------
    >>> from dpnb.accounting import GDP, GDPAccumulator, Odometer
    >>> isinstance(GDPAccumulator(), Odometer)
    True
    >>> GDPAccumulator().step(GDP(0.3)).step(GDP(0.4)).bound
    0.5
    """

    #: What the bound is a bound on: "epsilon", "rho", "mu" or "rdp".
    measure: ClassVar[str]

    @property
    def kind(self) -> OdometerKind:
        """What the bound means."""
        ...

    @property
    def bound(self) -> float:
        """The reading now, in nats (mu has none), rounded up; infinite where nothing is proved."""
        ...

    def step(self, loss: Loss) -> Self:
        """The odometer after the loss; it counts from the launch of the release, before its answer is seen."""
        ...

    def statement(self) -> str:
        """The reading in words, with its numbers."""
        ...


@dataclass(frozen=True, init=False, repr=False)
class OdometerState(Frozen):
    """Base of all odometers."""

    measure: ClassVar[str]

    @safe_repr
    def __repr__(self) -> str:
        pairs = ((field.name, getattr(self, field.name)) for field in fields(self))
        shown = ((name, decimal_up(value) if isinstance(value, Fraction) else value) for name, value in pairs)
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown)})"
