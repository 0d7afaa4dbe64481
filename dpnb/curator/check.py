"""A check of a table against its declaration: how much of each column would count in a session.

For the curator alone, in a terminal.  A session cannot disclose to an analyst what follows from the rows, for example
that no row has any of the declared categories.  The curator has to know this before the first query: every answer about
such a column would be zero with a narrow interval.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpnb._core.ledger_metadata import MOCK_DATA
from dpnb._core.options import checked_sampled, ledger_path
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._sources.formats import read_tables
from dpnb._sources.source import sources_of
from dpnb.curator.check_advice import (
    CheckAdvice,
    about_absent,
    about_column,
    about_file,
    about_separator,
    about_snapshot,
    about_units,
)
from dpnb.curator.kernel import refuse_in_kernel
from dpnb.curator.tally import ColumnSummary, UnitSummary, summarize_column, summarize_units
from dpnb.curator.versions import LedgerChanges, changes_in
from dpnb.errors import CheckError, SchemaWarning
from dpnb.ledger import MEMORY
from dpnb.schema import ColumnType
from dpnb.session.declaration import Declaration, read_declaration
from dpnb.session.session import Session

FROM_ROWS = "its output is computed from the rows, and would be saved in a notebook that the analyst can read"


@dataclass(frozen=True, repr=False)
class CheckedColumn:
    """One declared column, and what its values count as.  For the curator alone, like the whole check."""

    name: str
    column: ColumnType
    tally: ColumnSummary | None  # None if the table does not have exactly one column of this name


@dataclass(frozen=True, repr=False)
class CheckedTable:
    """One table."""

    name: str  # empty for a single table
    file: str
    unit: PrivacyUnit
    units: UnitSummary | None  # None if a table does not have exactly one column for the privacy unit
    columns: tuple[CheckedColumn, ...]


@dataclass(frozen=True, repr=False)
class Check:
    """The result of a check.  For the curator alone: it has no repr."""

    declaration: str  # path
    tables: tuple[CheckedTable, ...]
    advice: tuple[CheckAdvice, ...]  # what to fix or to know
    changes: LedgerChanges | None  # in the ledger, if there is one

    @property
    def fine(self) -> bool:
        """Whether there is nothing to fix."""
        return not any(one.to_fix for one in self.advice)


def check(declaration: str, tables: Sequence[str]) -> Check:
    """Compare the tables with their declaration, and that with its ledger; nothing is charged or written.

    Each table is ``FILE``, or ``NAME=FILE`` if there are several.  A notebook kernel is refused.
    """
    refuse_in_kernel("check", FROM_ROWS, CheckError)
    stated = read_declaration(declaration, Session)
    declared, warned, changes = _declared(stated)
    sources = sources_of(tables, [*declared.schemas], "table")
    frames = read_tables(sources, "table", declared.wanted)
    advice = [CheckAdvice(stated.path, text, to_fix=False) for text in warned]
    if changes is not None and changes.refusal is not None:
        advice.append(CheckAdvice(stated.path, changes.refusal, to_fix=True))
    if changes is not None and any(one.scheme for one in sources.values()):
        advice += about_snapshot(stated, changes.path)
    unique_columns = {name: _once(frame.header) for name, frame in frames.items()}
    units = _units(frames, unique_columns, declared)
    checked = []
    for name, frame in frames.items():
        at, unit = ("schema", name) if name else ("schema",), declared.units[name]
        columns, absent, unusable = [], [], Counter[type]()
        for column, kind in declared.schemas[name].items():
            location = stated.locate(*at, column)
            summary = summarize_column(frame, column, kind) if column in unique_columns[name] else None
            columns.append(CheckedColumn(column, kind, summary))
            if summary is None:
                absent.append(about_absent(location, column, frame.header))
            else:
                advice += about_column(location, frame, column, kind, summary)
                unusable[type(kind)] += summary.unusable
        if unit.column is not None and unit.column not in unique_columns[name]:
            absent.append(about_absent(stated.locate("privacy_unit"), unit.column, frame.header))
        undivided = about_separator(stated.path, sources[name], frame)
        advice += undivided or [*absent, *about_file(stated.path, sources[name], frame, unusable)]
        checked.append(CheckedTable(name, sources[name].words, unit, units.get(name), tuple(columns)))
        if name in units:
            advice += about_units(stated, name, unit, units[name])
    return Check(stated.path, tuple(checked), tuple(advice), changes)


def _declared(stated: Declaration) -> tuple[PrivateTables, list[str], LedgerChanges | None]:
    """The tables of a session with this declaration, created on tables without rows; its warnings and changes."""
    arguments = stated.arguments()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        session = stated.located(
            lambda: Session(UnreadTables(_empty(stated, arguments), MOCK_DATA), **{**arguments, "ledger": MEMORY})
        )
    path = stated.located(lambda: ledger_path(arguments["ledger"], session.name))
    sampled = checked_sampled(arguments.get("sampled"))
    changes = changes_in(path, session.ledger.created, session.version, sampled)
    session.ledger.close()
    warnings_ = [str(one.message) for one in warned if issubclass(one.category, SchemaWarning)]
    return session._core.tables, warnings_, changes


def _empty(stated: Declaration, arguments: Mapping[str, Any]) -> Any:
    """Tables with the declared columns and no rows."""
    schema, unit = arguments["schema"], arguments.get("privacy_unit")

    def table(columns: Mapping[str, Any]) -> pd.DataFrame:
        return pd.DataFrame(columns=[*columns, *([unit] if isinstance(unit, str) and unit not in columns else [])])

    if not isinstance(schema, Mapping):
        return table({})
    if not stated.several:
        return table(schema)
    return {name: table(columns) for name, columns in schema.items() if isinstance(columns, Mapping)}


def _once(header: Sequence[str]) -> set[str]:
    """The column names that occur exactly once in a table."""
    return {name for name in header if header.count(name) == 1}


def _units(
    frames: Mapping[str, Any], unique_columns: Mapping[str, set[str]], declared: PrivateTables
) -> dict[str, UnitSummary]:
    """The units of the tables that have their declared columns."""
    present = {
        name: {column: kind for column, kind in schema.items() if column in unique_columns[name]}
        for name, schema in declared.schemas.items()
        if declared.units[name].column in (None, *unique_columns[name])
    }
    schemas = {name: schema for name, schema in present.items() if schema}
    return summarize_units({name: frames[name] for name in schemas}, schemas, declared.units) if schemas else {}
