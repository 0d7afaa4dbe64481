"""The state of an accountant after some rows of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpnb._core.accountant.comparison import FilterComparison
from dpnb.accounting.filters import Filter
from dpnb.accounting.odometers import Odometer
from dpnb.accounting.partition_cost import PartSums


@dataclass(frozen=True)
class AccountantState:
    """Filter and odometer after some rows, with what individual accounting records of these rows.

    They are one value, so that an interrupt never leaves one of them a charge ahead of the other.

    Under individual accounting, `first_exclusion` is the first row that may have excluded a unit (None while every unit
    certainly took part in all rows), and `by_version` the worst-case cost of each version of the table, as mu squared.
    """

    counted: FilterComparison
    first_exclusion: int | None = None
    by_version: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def filter(self) -> Filter:
        """The filter."""
        return self.counted.own.filter

    @property
    def parts(self) -> PartSums:
        """What the parts of partitions were charged, in the filter's kind of loss."""
        return self.counted.own.parts

    @property
    def odometer(self) -> Odometer | None:
        """The odometer; None once a mechanism was launched whose loss no time-uniform odometer can count."""
        return self.counted.odometers.get("mixture")

    @property
    def last_id(self) -> int:
        """Id of the last row."""
        return self.counted.last_id
