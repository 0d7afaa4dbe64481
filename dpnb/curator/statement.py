"""A person's own statement: what they have paid for each question of a ledger, where each has a budget of their own.

For that person alone.  What one unit has spent follows from its rows, so showing it to an analyst would be a release
that nobody has paid for; whoever serves several persons shows each only theirs.  The curator makes it outside any
session, from the table and the ledger alone, which is read and never written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpnb._backends.memory.prepare.prepared_table import units_named
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history import launch_text
from dpnb._core.history.log import gdp_of
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.pricing.stored_request import plan_of, request_of
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._core.unit_budgets import IndividualAccounting, Participation, UnitChargeRecord
from dpnb._plan.plan import describe_plan
from dpnb.accounting.individual import OnExhausted
from dpnb.curator.kernel import refuse_in_kernel
from dpnb.curator.table_files import files_of, read_tables
from dpnb.curator.unit_name import UnitType, names_unit
from dpnb.errors import StatementError
from dpnb.ledger import Charge, Ledger

ALONE = "what it shows is for one person alone, and a notebook would keep it for the analyst"

FIRST_VERSION = "1"
"""Of a table, unless the curator says otherwise."""


@dataclass(frozen=True, repr=False)
class StatementEntry:
    """One question of the ledger.  For one person alone, like all of the statement.

    Parameters
    ----------
    id : int
        Of the ledger's row.
    time, question : str
    version : str
        Of the table that was asked.
    asked : Fraction
        What taking part in full would have cost, as mu squared, rounded up; 0 where it cannot be known or is nothing.
    paid : Fraction
        What was counted, as mu squared, rounded up; so it may be above `asked` in the last digits.
    took : Took
    answered : bool
        Whether there is an answer; what was charged stays charged without one.
    delta : Fraction
        What everybody was charged alike, for looking for groups.
    """

    id: int
    time: str
    question: str
    version: str
    asked: Fraction
    paid: Fraction
    took: Participation
    answered: bool
    delta: Fraction


@dataclass(frozen=True, repr=False)
class Statement:
    """What one unit has paid.  For that person alone: it has no repr.

    Parameters
    ----------
    who : str
        The unit, as the table names it.
    ledger, version : str
        From which file, and of which version of the table.
    metadata : Pledge
    account : Account
        Of everybody: how the public worst case stands.
    on_exhausted : str
    budget : Fraction
        Of each unit, as mu squared.
    lines : tuple of Line
    """

    who: str
    ledger: str
    version: str
    metadata: LedgerMetadata
    account: Accountant
    on_exhausted: OnExhausted
    budget: Fraction
    lines: tuple[StatementEntry, ...]

    @property
    def spent(self) -> Fraction:
        """All that was charged, as mu squared, rounded up."""
        return sum((line.paid for line in self.lines), Fraction(0))

    @property
    def excluded_since(self) -> int | None:
        """The question since which the person is out for good, under ``"drop"``."""
        out = (line.id for line in self.lines if line.took == "left out")
        return next(out, None) if self.on_exhausted == "drop" else None

    @property
    def left(self) -> Fraction:
        """What can still be charged, as mu squared; nothing for whoever is out for good."""
        return Fraction(0) if self.excluded_since is not None else max(self.budget - self.spent, Fraction(0))


def statement(
    ledger: str,
    tables: Sequence[str],
    unit: str,
    *,
    version: str | None = None,
    unit_type: UnitType | None = None,
) -> Statement:
    """Work out what one unit has paid; nothing is charged and nothing is written.

    Parameters
    ----------
    ledger : str
        Path of the session's ledger.
    tables : sequence of str
        ``FILE``, or ``NAME=FILE`` for each of several tables; the rows, and the types of the values, that the session
        was given.
    unit : str
        What names the person in the privacy unit's column; where each row is a unit, its place in the file, from 0.
    version : str, optional
        Of the table in the file; needed where the ledger names several.
    unit_type : str, optional
        ``"text"``, ``"number"`` or ``"time"``, where `unit` could be several.

    Raises
    ------
    StatementError
        This is a notebook's kernel; the ledger charges everybody alike; the unit is not in the table, or could be one
        of several; or the version has to be said.
    SchemaError
        A table's file is missing, cannot be read, or lacks a column.
    LedgerError
        The ledger is missing, cannot be read, or was altered.
    """
    refuse_in_kernel("statement", ALONE, StatementError)
    copied = Ledger.read_only_copy(ledger)
    try:
        stored = copied.metadata
        pledge = LedgerMetadata.from_dict(stored, copied.path)
        if pledge.on_exhausted is None:
            raise StatementError(
                f"statement: is for a session with accounting='individual', and the ledger {copied.path!r} is of one "
                "with accounting='worst-case', which charges everybody alike; session.log() shows what, to anybody"
            )
        account = Accountant.from_ledger(copied)
        version = _version(version, copied.charges())
        frames = read_tables(files_of(tables, pledge.tables.schemas, "--table"), "--table")
        pledge.tables.read(UnreadTables(frames))
        number = _number(unit, unit_type, frames, pledge.tables)
        paid = IndividualAccounting(pledge.tables, account, version, pledge.on_exhausted).paid_by(number)
        budget = account.promise.initial_filter.unit_budget  # type: ignore[union-attr]  # individual, so it is a worst case
        lines = tuple(map(_line, paid))
        return Statement(
            _who(unit, pledge.tables), copied.path, version, pledge, account, pledge.on_exhausted, budget, lines
        )
    finally:
        copied.close()


def _version(given: str | None, charges: list[Charge]) -> str:
    """Of the table in the curator's file; one that the ledger does not name may be one that was never asked."""
    versions = list(dict.fromkeys(charge.table_version for charge in charges))
    if given is None and len(versions) > 1:
        raise StatementError(
            f"--version: needed, since the ledger has questions about the versions {', '.join(map(repr, versions))} of "
            f"the table; say which one the file is, as in --version {versions[-1]}"
        )
    return given if given is not None else versions[0] if versions else FIRST_VERSION


def _number(unit: str, unit_type: UnitType | None, frames: Mapping[str, Any], tables: PrivateTables) -> int:
    """The unit's number in the prepared tables."""
    column = next(iter(tables.units.values())).column
    if column is None:
        rows = len(frames[""])
        if not (unit.isascii() and unit.isdigit()) or int(unit) >= rows:
            raise StatementError(
                f"--unit: must be the place of a row of the file, from 0 to {rows - 1}, for each row is a unit of its "
                f"own; got {unit!r}"
            )
        return int(unit)
    found = units_named(frames, tables.units, names_unit(unit, unit_type))
    if not found:
        meant = f" as a {unit_type}" if unit_type else ""
        raise StatementError(
            f"--unit: must be in the column {column!r} of the table; {unit!r}{meant} is not; write it as the file "
            "does, and check that it is the right file"
        )
    if len(found) > 1:
        raise StatementError(
            f"--unit: must name one unit; {unit!r} is {len(found)} in the column {column!r}, of several types; add "
            "--unit-type text, number or time"
        )
    return found[0]


def _who(unit: str, tables: PrivateTables) -> str:
    column = next(iter(tables.units.values())).column
    return f"row {unit} of the file" if column is None else f"{column} {unit}"


def _line(paid: UnitChargeRecord) -> StatementEntry:
    charge = paid.charge
    if charge.launch is not None or charge.result is not None:
        words = launch_text.of(charge)
    else:
        words = describe_plan(plan_of(charge), request_of(charge).view)
    # What is counted for a unit is rounded up, maybe beyond the worst case: that is a bound too, and a rounder number.
    worst = gdp_of(charge.loss)
    asked = Fraction(paid.full_cost) if worst is None else min(Fraction(paid.full_cost), worst.mu_squared)
    return StatementEntry(
        id=charge.id,
        time=charge.time,
        question=words,
        version=charge.table_version,
        asked=asked,
        paid=paid.paid,
        took=paid.participation,
        answered=charge.status == "released",
        delta=charge.loss.delta,
    )
