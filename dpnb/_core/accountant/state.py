"""How a budget stands after some rows of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpnb.accounting.convert import convert
from dpnb.accounting.guarantee import AnyFilter
from dpnb.accounting.losses import ZCDP, Loss
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.accounting.parallel import NO_PARTS, PartRef, PartSums
from dpnb.errors import ConversionError


@dataclass(frozen=True)
class AccountantState:
    """Filter and odometer after the rows of the ledger up to number `last_id`.

    One value, so that an interrupt never leaves the one a charge ahead of the other.

    Parameters
    ----------
    filter : filter
    odometer : MixtureOdometer or None
        None once something was launched whose loss no time-uniform odometer counts.
    parts, odometer_parts : PartSums
        What the parts of partitions were charged, in the filter's kind of loss and in the odometer's.
    left_out : int or None
        Under individual accounting the first row from which somebody may have been left out; None while everybody
        surely took part in everything.
    by_version : dict of str to Fraction
        Under individual accounting the worst case of each version of the table, as mu squared.
    last_id : int
    """

    filter: AnyFilter
    odometer: MixtureOdometer | None
    parts: PartSums = NO_PARTS
    odometer_parts: PartSums = NO_PARTS
    left_out: int | None = None
    by_version: Mapping[str, Fraction] = field(default_factory=dict)
    last_id: int = 0


def timed(
    odometer: MixtureOdometer, times: PartSums, path: Sequence[PartRef], loss: Loss
) -> tuple[MixtureOdometer | None, PartSums]:
    """The odometer after a loss that reaches it through parts; None once there is a loss that it cannot count."""
    try:
        if not path:
            return odometer.step(loss), times
        counted = convert(loss, ZCDP)
    except ConversionError:
        return None, times
    times, grown = times.after(path, counted.parts)
    return odometer.step(counted.with_parts(grown)), times
