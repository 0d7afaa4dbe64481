"""The state of an accountant after some rows of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpnb.accounting.convert import convert
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import ZCDP, Loss
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.accounting.partition_cost import NO_PARTS, PartRef, PartSums
from dpnb.errors import ConversionError


@dataclass(frozen=True)
class AccountantState:
    """Filter and odometer after the rows of the ledger up to number `last_id`.

    They are one value, so that an interrupt never leaves one of them a charge ahead of the other.

    Parameters
    ----------
    filter : filter
        The filter.
    odometer : MixtureOdometer or None
        The odometer; None once a mechanism was launched whose loss no time-uniform odometer can count.
    parts, odometer_parts : PartSums
        What the parts of partitions were charged, in the filter's kind of loss and in the odometer's.
    first_exclusion : int or None
        Under individual accounting, the first row that may have excluded a unit; None while every unit certainly took
        part in all rows.
    by_version : mapping of str to Fraction
        Under individual accounting, the worst-case cost of each version of the table, as mu squared.
    last_id : int
        Number of the last row.
    """

    filter: Filter
    odometer: MixtureOdometer | None
    parts: PartSums = NO_PARTS
    odometer_parts: PartSums = NO_PARTS
    first_exclusion: int | None = None
    by_version: Mapping[str, Fraction] = field(default_factory=dict)
    last_id: int = 0


def step_odometer(
    odometer: MixtureOdometer, parts: PartSums, path: Sequence[PartRef], loss: Loss
) -> tuple[MixtureOdometer | None, PartSums]:
    """The odometer and the sums of parts after a loss; None instead of the odometer if it cannot count the loss."""
    try:
        if not path:
            return odometer.step(loss), parts
        counted = convert(loss, ZCDP)
    except ConversionError:
        return None, parts
    parts, growth = parts.after(path, counted.parts)
    return odometer.step(counted.with_parts(growth)), parts
