"""The metadata of a ledger, and in what two declarations differ.

Before its first request a ledger takes whatever a session declares.  Then privacy unit, budget and filter stay.  The
columns and limits of a version of the table stay once something was requested of it, but columns can be added; a new
version may have others (`accountant.later_sessions`).  Budget and filter are added by `Accountant`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dpnb._backends.reading import READING, USUAL, Reading
from dpnb._core.tables import PrivateTables
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.budget import Budget, NoBudget, budget_from_json
from dpnb.accounting.individual import OnExhausted
from dpnb.errors import LedgerError
from dpnb.ledger.declared import ADDED, OF_VERSION, STATED, added_to
from dpnb.results.disclosure.parts import Stated
from dpnb.schema import Categories, ColumnType, Key, Schema
from dpnb.times import END_OF_DAY

NOT_PRIVATE = "NOT PRIVATE: seeded test noise"
MOCK_DATA = "REHEARSAL: mock data, not real"
NOISE = {"private": None, "test_seed": NOT_PRIVATE, "mock_data": MOCK_DATA}
"""The ledger's codes for the source of noise and rows, and the notice that is shown for each."""
NO_BUDGET = "NO BUDGET: nothing limits the privacy loss"
"""The notice of a session without a budget; it is shown like the others, and after them."""


def with_limit(notice: str | None, budget: Budget | NoBudget) -> str | None:
    """The notice of a session: that of its noise and rows, and whether there is no budget."""
    if budget.is_limited:
        return notice
    return NO_BUDGET if notice is None else f"{notice}. {NO_BUDGET}"


@dataclass(frozen=True)
class LedgerMetadata:
    """The metadata of a ledger, without budget and filter."""

    name: str
    tables: PrivateTables
    notice: str | None  # a value of `NOISE`: a warning that answers are not real or not private
    on_exhausted: OnExhausted | None  # None under worst-case accounting
    stated: Stated | None = None  # in the curator's own words, which rows of the ledger have

    def to_dict(self) -> dict[str, str]:
        """The metadata as stored in the ledger."""
        return {
            "session_name": self.name,
            "schema": as_text(self.tables.schemas),
            "privacy_unit": as_text({name: replace(unit, label=UNSET) for name, unit in self.tables.units.items()}),
            **({ADDED: as_text({"": self.tables.added})} if self.tables.added else {}),
            **{name: as_text({"": value}) for name, value in self.tables.reading.to_dict().items()},
            "noise": next(code for code, notice in NOISE.items() if notice == self.notice),
            **({} if self.on_exhausted is None else {"on_exhausted": self.on_exhausted}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, str], path: str) -> LedgerMetadata:
        """Read what `to_dict` wrote."""
        try:
            tables = tables_of(stored["schema"], stored["privacy_unit"])
            tables.added = added_to(stored)
            reading = {name: msgspec.json.decode(stored[name]) for name in READING if name in stored}
            tables.reading = msgspec.convert(reading, Reading)
            on_exhausted = msgspec.convert(stored.get("on_exhausted"), OnExhausted | None)
            stated = msgspec.json.decode(stored.get(STATED, "null"), type=Stated | None)
            metadata = cls(stored["session_name"], tables, NOISE[stored["noise"]], on_exhausted, stated)
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            metadata = None
        # Another version of dpnb may have written more than is read here.
        if metadata is None or any(stored[name] != text for name, text in metadata.to_dict().items()):
            raise LedgerError(
                f"ledger {path!r}: its metadata must be as this version of dpnb writes it; it is not; use the version "
                "that its sessions use"
            )
        metadata.tables.clips_units = metadata.on_exhausted == "clip"
        if metadata.stated is not None:
            metadata.tables.label_units(metadata.stated.unit_label)
        return metadata


def tables_of(schema: str, unit: str) -> PrivateTables:
    """The declared tables: one table's columns have types; of several, the tables have columns."""
    if not all(isinstance(entry.get("type"), str) for entry in msgspec.json.decode(schema).values()):
        units = msgspec.json.decode(unit, type=dict[str, PrivacyUnit])
        return PrivateTables(msgspec.json.decode(schema, type=dict[str, Schema]), units)
    columns = msgspec.json.decode(schema, type=Schema)
    return PrivateTables({"": columns}, {"": msgspec.json.decode(unit, type=PrivacyUnit)})


def as_text(declared: Mapping[str, Any]) -> str:
    """The metadata of a single table, or of several tables by name."""
    content = declared.get("", declared)
    return msgspec.json.encode(content, order="deterministic").decode()


# --- differences in words ---------------------------------------------------------------------------------------------


MAX_NAMED = 5
"""Differences, and values of each, that a message names."""

MAX_VALUE, MAX_WORDS = 24, 160
"""Characters of a value, and of all differences but the first, that a message quotes."""


class Difference(NamedTuple):
    """What differs between two declarations, in words, and the column that has another declaration."""

    name: str  # of the metadata
    words: str
    table: str = ""
    column: str = ""
    may_change: bool = False  # with a new version of the table


def differences(known: Mapping[str, str], wanted: Mapping[str, str], *, with_new: bool = False) -> Iterator[Difference]:
    """The metadata that differ, and how, without the names of other columns.

    Added columns that a session lacks are no difference.  Metadata that `wanted` does not have yet are not compared.
    """
    for name in sorted({*known, *wanted} - {"schema", "privacy_unit", ADDED}):
        if known.get(name) != wanted.get(name) and (name in wanted or name not in ("budget", "filter")):
            which = f"{name}: " if name in READING else ""
            sides = _words(name, known.get(name)), _words(name, wanted.get(name))
            words = f"{which}the ledger has {sides[0]}, the session has {sides[1]}"
            yield Difference(name, words, may_change=name in OF_VERSION)
    before, after = (
        tables_of(known["schema"], known["privacy_unit"]),
        tables_of(wanted["schema"], wanted["privacy_unit"]),
    )
    if before.schemas.keys() != after.schemas.keys():
        tables = (
            " and ".join(f"table {name!r}" if name else "one table" for name in of.schemas) for of in (before, after)
        )
        yield Difference("schema", f"the ledger has {next(tables)}, the session has {next(tables)}", may_change=True)
        units = [sorted({f"{one.column} ({one.type})" for one in of.units.values()}) for of in (before, after)]
        if units[0] != units[1]:
            words = f"the ledger has {', '.join(units[0])}, the session has {', '.join(units[1])}"
            yield Difference("privacy_unit", words)
        return
    may_lack = set() if "on_exhausted" in known else {*added_to(known)}
    for table, columns in before.schemas.items():
        where, own = f" of {table!r}" if table else "", after.schemas[table]
        one, other = _limits(before.units[table]), _limits(after.units[table])
        for limit in one:
            if one[limit] != other[limit]:
                words = f"{limit}{where}: the ledger has {one[limit]}, the session has {other[limit]}"
                yield Difference("privacy_unit", words, may_change=limit not in ("privacy_unit", "unit_type"))
        for name in (*columns, *(own.keys() - columns.keys() if with_new else ())):
            if name not in own and (table, name) not in may_lack:
                words = f"column {_cut(name)}{where}: the session lacks it; it is {_short(columns[name])}"
                yield Difference("schema", words, may_change=True)
            elif name not in columns:
                words = f"column {_cut(name)}{where}: the ledger lacks that column"
                yield Difference("schema", words, may_change=True)
            elif name in own and msgspec.json.encode(own[name]) != msgspec.json.encode(
                columns[name]
            ):  # as 1, 1.0, True
                words = f"column {_cut(name)}{where}: {_column_difference(columns[name], own[name])}"
                yield Difference("schema", words, table, name, may_change=True)


def _words(name: str, text: str | None) -> str:
    if name == "on_exhausted":
        return "accounting='worst-case'" if text is None else f"accounting='individual', on_exhausted={text!r}"
    if name == "budget" and text is not None:
        return repr(budget_from_json(json.loads(text)))
    if name in READING and text is None:
        return repr(getattr(USUAL, name))
    return "none" if text is None else text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}..."


def _limits(unit: PrivacyUnit) -> dict[str, object]:
    """The privacy unit and its limits as arguments of a session."""
    bounds = unit.contribution_bounds
    return {
        "privacy_unit": unit.column,
        "max_rows_per_unit": unit.max_rows,
        "max_groups_per_unit": bounds.max_groups,
        "max_rows_per_group": bounds.max_rows_per_group,
        "max_norm_per_unit": bounds.max_norm,
        "unit_type": None if unit.type is msgspec.UNSET else unit.type,
    }


def _column_difference(known: ColumnType, wanted: ColumnType) -> str:
    if isinstance(known, Categories) and isinstance(wanted, Categories):
        before, after = (dict.fromkeys(map(_typed, of.values)) for of in (known, wanted))
        sides = ("the session lacks", before, after), ("the ledger lacks", after, before)
        missing = ((who, [one[1] for one in of if one not in against]) for who, of, against in sides)
        lacks = [f"{who} {_listed(values)}" for who, values in missing if values]
        return ", ".join(lacks) or "the session has the categories in another order"
    if type(known) is not type(wanted):
        return f"the ledger has {_short(known)}, the session has {_short(wanted)}"
    fields = [name for name in known.__struct_fields__ if getattr(known, name) != getattr(wanted, name)]
    if "zone" in fields:  # from which the other distances from UTC follow
        return f"zone {getattr(known, 'zone', '')} in the ledger, {getattr(wanted, 'zone', '')} in the session"
    one, other = (
        ", ".join(f"{name}={getattr(of, name)!r}" for name in fields).replace(END_OF_DAY, "") for of in (known, wanted)
    )
    return f"the ledger has {one}, the session has {other}"


def _typed(value: Key) -> tuple[str, Key]:
    """A category that differs from another one where 1, 1.0 and True do."""
    return type(value).__name__, value


def _listed(values: list[Key]) -> str:
    more = len(values) - MAX_NAMED
    return ", ".join(map(_cut, values[:MAX_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def _cut(value: Key) -> str:
    """A value or a name; only the beginning of a long one."""
    text = repr(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."


def _short(column: ColumnType) -> str:
    return f"Categories([{_listed(list(column.values))}])" if isinstance(column, Categories) else repr(column)


def in_short(words: list[str]) -> str:
    """The first of some differences; more than one only as far as they are short."""
    named = [words[0]]
    for one in words[1:MAX_NAMED]:
        if sum(map(len, named)) + len(one) > MAX_WORDS:
            break
        named.append(one)
    more = len(words) - len(named)
    return "; ".join(named) + (f"; and {more:,} more" if more else "")
