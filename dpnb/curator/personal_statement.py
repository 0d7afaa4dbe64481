"""A person's statement: what one privacy unit has been charged for each query of a ledger, under individual accounting.

For that person alone.  What one unit has spent follows from its rows, so showing it to an analyst would be a release
that is not charged; a service for several persons shows each of them only their own.  The curator makes it outside any
session, from the table and the ledger alone; the ledger is read and never written.

After each query the statement has a bound on what the person has lost until then, by the tracker of Feldman and Zrnic
2021, Algorithm 5 (:mod:`dpnb.accounting.individual.worst_case`), and beside it the public worst case.  No session
computes the tracker, and nothing of it is stored: it exists only here.

A unit is found by its value in the privacy unit's column, never by the portable integer derived from the value, which
is the same for -5 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import msgspec

from dpnb._backends.memory.prepare.prepared_table import units_named
from dpnb._backends.memory.prepare.values import time_name
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history.log import gdp_of
from dpnb._core.history.words import row_in_words
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.pricing.query_state import plan_of, request_of
from dpnb._core.source_files import was_read_as_texts
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._core.unit_budgets import IndividualAccounting, Participation, UnitChargeRecord
from dpnb._plan.plan import describe_plan
from dpnb._sources.formats import read_tables
from dpnb._sources.source import sources_of
from dpnb.accounting.individual import OnExhausted, UnitTracker
from dpnb.curator.kernel import refuse_in_kernel
from dpnb.curator.versions import metadata_of, version_facts
from dpnb.errors import StatementError
from dpnb.ledger import Charge, Ledger
from dpnb.ledger.charge import DECLARED
from dpnb.schema import plain

UnitNameType = Literal["text", "number", "time"]

NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")


def names_unit(name: str, unit_type: UnitNameType | None = None) -> Callable[[Any], bool]:
    """A predicate: whether a value of the privacy unit's column is the one that was typed.

    What was typed may be a text, a number, a date or a point in time; `unit_type` is needed if it is ambiguous.
    """
    number = _number_in(name) if unit_type in (None, "number") else None
    moment = _moment(name) if unit_type in (None, "time") else None
    text = name if unit_type in (None, "text") else None

    def named(value: Any) -> bool:
        try:
            value = plain(value)
            if isinstance(value, str):
                return value in (text, moment)
            if number is not None and value == number:
                return True
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return not is_number and text is not None and str(value) == text
        except Exception:  # noqa: BLE001  (an arbitrary object that cannot be typed)
            return False

    return named


def _number_in(name: str) -> int | float | None:
    if not NUMBER.fullmatch(name):
        return None
    number = Decimal(name)
    # Large integers are not representable as doubles.
    return int(number) if number == number.to_integral_value() else float(name)


def _moment(name: str) -> str | None:
    try:
        return time_name(datetime.fromisoformat(name))
    except ValueError:
        return None


# --- a person's statement ---------------------------------------------------------------------------------------------


ALONE = "its output is for one person alone, and would be saved in a notebook that the analyst can read"

FIRST_VERSION = "1"
"""The default version of a table."""


@dataclass(frozen=True, repr=False)
class StatementEntry:
    """One query of the ledger.  For one person alone, like the whole statement.

    The worst case is what a unit that every query affects in full has spent after this query, as mu squared, up to the
    budget.  This is public.
    """

    id: int  # of the row of the ledger
    time: str  # when the query was charged
    query: str  # in words
    version: str  # of the table that the query used
    full_cost: Fraction  # of taking part in full, as mu squared, rounded up; 0 if it is unknown or zero
    paid: Fraction  # as mu squared, rounded up; so it may exceed `full_cost` in the last digits
    participation: Participation  # how the unit took part
    answered: bool  # a charge without an answer still counts
    delta: Fraction  # that every unit was charged for discovering groups
    tracked: Fraction  # bound of the person's tracker after this query, as mu squared
    worst_case: Fraction


@dataclass(frozen=True, repr=False)
class Statement:
    """What one unit has been charged.  For that person alone: it has no repr."""

    unit: str  # as the table names it
    ledger: str  # path
    version: str  # of the table
    metadata: LedgerMetadata  # what the ledger was created for
    account: Accountant  # of the session; has the public worst case
    on_exhausted: OnExhausted  # what happens to a unit that cannot pay
    budget: Fraction  # of each unit, as mu squared
    entries: tuple[StatementEntry, ...]  # in the order of the ledger
    versions: tuple[tuple[str, str], ...] = ()  # of the table, with their dates and columns, if there are several

    @property
    def spent(self) -> Fraction:
        """The total charge, as mu squared, rounded up."""
        return sum((entry.paid for entry in self.entries), Fraction(0))

    @property
    def excluded_since(self) -> int | None:
        """The query since which the unit is permanently excluded, under ``"drop"``; None if it is not."""
        excluded = (entry.id for entry in self.entries if entry.participation == "excluded")
        return next(excluded, None) if self.on_exhausted == "drop" else None

    @property
    def left(self) -> Fraction:
        """What can still be charged, as mu squared; 0 for a unit that is permanently excluded."""
        return Fraction(0) if self.excluded_since is not None else max(self.budget - self.spent, Fraction(0))


def statement(
    ledger: str,
    tables: Sequence[str],
    unit: str,
    *,
    version: str | None = None,
    unit_type: UnitNameType | None = None,
) -> Statement:
    """Compute what one unit has been charged; nothing is charged and nothing is written.

    Each table is ``FILE``, or ``NAME=FILE`` if there are several, with the same rows and types of values as the
    session's table.  `unit` is the value in the privacy unit's column; if each row is a unit, the row number in the
    file, from 0.  `version` is required if the ledger has several versions of the table, and `unit_type` if the type of
    `unit` is ambiguous.  A notebook kernel and a ledger with worst-case accounting are refused.
    """
    refuse_in_kernel("statement", ALONE, StatementError)
    copied = Ledger.read_only_copy(ledger)
    try:
        metadata = LedgerMetadata.from_dict(metadata_of(copied, version), copied.path)
        tables_, mode = metadata.tables, metadata.on_exhausted
        if mode is None:
            raise StatementError(
                f"statement: requires the ledger of a session with accounting='individual'; {copied.path!r} has "
                "accounting='worst-case', which charges every unit the same; session.log shows the charges"
            )
        account = Accountant.from_ledger(copied)
        version = _version(version, copied.charges())
        frames = read_tables(sources_of(tables, [*tables_.schemas], "--table"), "--table", tables_.wanted)
        if not was_read_as_texts(copied, version):
            _refuse_other_names(frames, tables_, version)
        tables_.read(UnreadTables(frames))
        number = _number(unit, unit_type, frames, tables_)
        paid = [
            (record, payer)
            for payer in _payers(account)
            for record in IndividualAccounting(tables_, payer, version, mode).paid_by(number)
        ]
        paid.sort(key=lambda one: one[0].charge.id)
        budget = account.guarantee.initial_filter.unit_budget
        entries = tuple(_entries(paid, budget))
        versions = version_facts(copied)
        return Statement(_unit(unit, tables_), copied.path, version, metadata, account, mode, budget, entries, versions)
    finally:
        copied.close()


def _refuse_other_names(frames: Mapping[str, Any], tables: PrivateTables, version: str) -> None:
    """Refuse a file with numbers for units, read as texts, if the sessions may have had them as numbers."""
    for name, frame in frames.items():
        unit = tables.units[name]
        if unit.column is None or unit.type is not msgspec.UNSET or not frame.names_units_by_texts:
            continue
        if frame.columns.tolist().count(unit.column) == 1 and frame[unit.column].str.fullmatch(NUMBER).any():
            raise StatementError(
                f"--table: the column {unit.column!r} of the file is read as texts, and the sessions with version "
                f"{version!r} had a table in memory; if it had numbers there, other rows of a person counted; give "
                "that table as a .parquet file, or declare unit_type='integer' in the next session"
            )


def _version(version: str | None, charges: list[Charge]) -> str:
    """Version of the table in the file; the ledger may not contain it if that version was never queried."""
    versions = list(dict.fromkeys(charge.table_version for charge in charges if charge.kind not in DECLARED))
    if version is None and len(versions) > 1:
        raise StatementError(
            f"--version: required, since the ledger has queries of the versions {', '.join(map(repr, versions))} of "
            f"the table; give the version of the file, for example --version {versions[-1]}"
        )
    return version if version is not None else versions[0] if versions else FIRST_VERSION


def _number(unit: str, unit_type: UnitNameType | None, frames: Mapping[str, Any], tables: PrivateTables) -> int:
    """The unit's number in the prepared tables."""
    column = next(iter(tables.units.values())).column
    if column is None:
        rows = len(frames[""])
        if not (unit.isascii() and unit.isdigit()) or int(unit) >= rows:
            raise StatementError(
                f"--unit: must be a row number of the file, from 0 to {rows - 1}, since each row is a privacy unit; "
                f"got {unit!r}"
            )
        return int(unit)
    matches = units_named(frames, tables.units, names_unit(unit, unit_type))
    if not matches:
        meant = f" as a {unit_type}" if unit_type else ""
        raise StatementError(
            f"--unit: must be in the column {column!r} of the table; {unit!r}{meant} is not; spell it as in the file, "
            "and check that it is the right file"
        )
    if len(matches) > 1:
        raise StatementError(
            f"--unit: must name one unit; {unit!r} matches {len(matches)} in the column {column!r}, of several types; "
            "add --unit-type text, number or time"
        )
    return matches[0]


def _unit(unit: str, tables: PrivateTables) -> str:
    declared = next(iter(tables.units.values()))
    return f"row {unit} of the file" if declared.column is None else f"{declared.noun} {unit}"


def _payers(account: Accountant) -> list[Accountant]:
    """The accountants within which each unit has a budget: those of the analysts who have reserved parts, or one."""
    parts = account.tree.grants().values()
    analysts = [one for one in parts if (one.level, one.mode) == ("analyst", "reserved")]
    return [account.for_analyst(one) for one in analysts] or [account]


def _entries(paid: list[tuple[UnitChargeRecord, Accountant]], budget: Fraction) -> Iterator[StatementEntry]:
    tracker, spent = UnitTracker(budget), Fraction(0)
    worst_cases: dict[str, Fraction] = {}  # by the node that has the unit's budget
    for record, payer in paid:
        tracker, spent = tracker.step(record.paid), spent + record.paid
        whole: Fraction = payer.guarantee.initial_filter.unit_budget
        before, node = worst_cases.get(payer.root_node, Fraction(0)), payer.root_node
        worst_cases[node] = min(before + payer.worst_case(record.charge.id)[0], whole)
        # Every bound that is at least the sum of the charges holds, so the last increment need not exceed the budget.
        yield _entry(record, min(tracker.bound, max(budget, spent)), sum(worst_cases.values(), Fraction(0)))


def _entry(paid: UnitChargeRecord, tracked: Fraction, worst_case: Fraction) -> StatementEntry:
    charge = paid.charge
    if charge.launch is not None or charge.result is not None:
        query = row_in_words(charge)
    else:
        query = describe_plan(plan_of(charge), request_of(charge).view)
    # The charge of a unit is rounded up, possibly beyond the worst case, which is also a bound and a rounder number.
    worst = gdp_of(charge.loss)
    full_cost = Fraction(paid.full_cost) if worst is None else min(Fraction(paid.full_cost), worst.mu_squared)
    return StatementEntry(
        id=charge.id,
        time=charge.time,
        query=query,
        version=charge.table_version,
        full_cost=full_cost,
        paid=paid.paid,
        participation=paid.participation,
        answered=charge.status == "released",
        delta=charge.loss.delta,
        tracked=tracked,
        worst_case=worst_case,
    )
