"""The metadata of a ledger: written when a session opens, and read by commands that have no session.

Before its first request a ledger takes whatever a session declares.  Then privacy unit, budget and filter stay, and so
do the columns that were declared; columns can be added (`declared_next`).  Budget and filter are added by `Accountant`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dpnb._core.tables import PrivateTables
from dpnb._plan.join import schema_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._request import request_from
from dpnb.accounting.budget import Budget
from dpnb.accounting.individual import OnExhausted
from dpnb.accounting.no_budget import NoBudget, budget_from_json
from dpnb.errors import LedgerError, PlanError
from dpnb.ledger import Ledger, refuse_unreadable
from dpnb.ledger.declared import ADDED, STATED, Declared, added_to
from dpnb.ledger.queries import LedgerQueries, stored_ledger
from dpnb.results.disclosure.stated import Stated
from dpnb.schema import Categories, ColumnType, Key, Schema

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
            "schema": _as_text(self.tables.schemas),
            "privacy_unit": _as_text({name: replace(unit, label=UNSET) for name, unit in self.tables.units.items()}),
            **({ADDED: _as_text({"": self.tables.added})} if self.tables.added else {}),
            **({"missing": _as_text({"": self.tables.missing})} if self.tables.missing else {}),
            "noise": next(code for code, notice in NOISE.items() if notice == self.notice),
            **({} if self.on_exhausted is None else {"on_exhausted": self.on_exhausted}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, str], path: str) -> LedgerMetadata:
        """Read what `to_dict` wrote."""
        try:
            tables = _tables(stored["schema"], stored["privacy_unit"])
            tables.added = added_to(stored)
            tables.missing = msgspec.json.decode(stored.get("missing", "[]"), type=tuple[str, ...])
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


def _tables(schema: str, unit: str) -> PrivateTables:
    """One table's columns have types; of several, the tables have columns."""
    if not all(isinstance(entry.get("type"), str) for entry in msgspec.json.decode(schema).values()):
        units = msgspec.json.decode(unit, type=dict[str, PrivacyUnit])
        return PrivateTables(msgspec.json.decode(schema, type=dict[str, Schema]), units)
    columns = msgspec.json.decode(schema, type=Schema)
    return PrivateTables({"": columns}, {"": msgspec.json.decode(unit, type=PrivacyUnit)})


def _as_text(declared: Mapping[str, Any]) -> str:
    """The metadata of a single table, or of several tables by name."""
    content = declared.get("", declared)
    return msgspec.json.encode(content, order="deterministic").decode()


# --- what a session may change ----------------------------------------------------------------------------------------


ABOUT_ROWS = ("schema", ADDED, "privacy_unit", "missing", "session_name")
"""The metadata that the parts of a divided budget do not depend on."""

KEPT = ("public_size", "sampled")
"""Parameters that a ledger keeps if a session that may change it does not declare them."""

MAX_NAMED = 5
"""Differences that a message names."""

Tables = dict[str, Schema]


class Difference(NamedTuple):
    """What differs between two declarations, in words, and the column that has another declaration."""

    name: str  # of the metadata
    words: str
    table: str = ""
    column: str = ""


def expected_tables(path: str, wanted: Mapping[str, str]) -> PrivateTables:
    """The tables that a ledger will declare once a session with these metadata is open; before their rows are read."""
    with stored_ledger(path) as ledger, refuse_unreadable("the metadata"):  # which are not verified yet
        metadata = wanted if ledger is None else declared_next(ledger, Declared(wanted, {})).metadata
    return LedgerMetadata.from_dict(metadata, path).tables


def refuse_changed(ledger: Ledger, expected: PrivateTables) -> None:
    """Refuse to go on if another session has changed the tables of a ledger while this one read their rows."""
    now = LedgerMetadata.from_dict(ledger.declared.metadata, ledger.path).tables
    if (now.schemas, now.units, now.added) != (expected.schemas, expected.units, expected.added):
        ledger.close()
        raise LedgerError(
            f"ledger {ledger.path!r}: must not be changed while its tables are read; another session has used or "
            "changed what it declares; nothing was charged; create the session again"
        )


def _schemas(metadata: Mapping[str, str]) -> Tables:
    return _tables(metadata["schema"], metadata["privacy_unit"]).schemas


def declared_next(ledger: LedgerQueries, wanted: Declared) -> Declared:
    """What a ledger declares from now on if a session declares `wanted`; raises `LedgerError` if that is impossible.

    Until the first request anything may change; only how the budget is determined stays once it is divided.  A request
    that was charged fixes what was declared then.  Columns can be added; added columns that no request has seen, since
    they came after the last one, can be changed or dropped by a session that changes the schema.  A session may lack
    added columns, and cannot use them; but not under individual accounting, where what each unit has paid is computed
    from all requests.
    """
    known = ledger.declared
    if known.metadata == wanted.metadata or not any(_differences(known.metadata, wanted.metadata, with_new=True)):
        return known
    fixed = ledger.declared_at_last_request
    if fixed is None:
        return _replaced(ledger, known, wanted)
    _refuse(ledger, list(_differences(fixed.metadata, wanted.metadata)))
    after = _schemas(wanted.metadata)
    has_unseen = all(name in after[table] for table, name in added_to(known.metadata)[len(added_to(fixed.metadata)) :])
    if has_unseen and not any(_differences(known.metadata, wanted.metadata)):
        fixed = known  # so that sessions that have these columns can go on
    before = _schemas(fixed.metadata)
    new = [(table, name) for table, columns in after.items() for name in sorted(columns.keys() - before[table].keys())]
    for table, name in new:
        _refuse_common_name(ledger, table, name, before, after)
    extended = {table: {**before[table], **columns} for table, columns in after.items()}
    if new:
        _refuse_changed_joins(ledger, before, extended)
    metadata = {**fixed.metadata, "schema": _as_text(extended)}
    if new:
        metadata[ADDED] = _as_text({"": (*added_to(fixed.metadata), *new)})
    return Declared(metadata, fixed.parameters)


def _replaced(ledger: LedgerQueries, known: Declared, wanted: Declared) -> Declared:
    """Another declaration before the first request."""
    found = _differences(known.metadata, wanted.metadata) if ledger.is_divided else ()
    _refuse(ledger, [one for one in found if one.name not in ABOUT_ROWS])
    kept = {name: known.parameters[name] for name in KEPT if name in known.parameters}
    return Declared(wanted.metadata, {**kept, **wanted.parameters})


def _refuse(ledger: LedgerQueries, found: list[Difference]) -> None:
    if found:
        name = found[0].name
        words = [one.words for one in found if one.name == name]
        more = f"; and {len(words) - MAX_NAMED} more" if len(words) > MAX_NAMED else ""
        stays = "columns can be added, but not changed or removed" if name == "schema" else "this stays"
        raise LedgerError(
            f"ledger {ledger.path!r}: was created for another {name}; {'; '.join(words[:MAX_NAMED])}{more}; once "
            f"something was charged, {stays}: declare it as the ledger has it{_copy_of(found[0])}, or give this "
            "session another ledger= (its budget is then spent in addition)"
        )


def _copy_of(found: Difference) -> str:
    """The way to another declaration of a column that is in the ledger: a copy of it, since columns can be added."""
    table, column = found.table or "table", found.column
    if not column:
        return ""
    return f", and otherwise a copy, {table}[{f'{column}_new'!r}] = {table}[{column!r}]"


def _refuse_common_name(ledger: LedgerQueries, table: str, name: str, before: Tables, after: Tables) -> None:
    """Refuse a new column whose name another table has: in their joins other columns would have other names."""
    others = [of for of in after if of != table and name in {*before[of], *after[of]}]
    if others:
        raise LedgerError(
            f"ledger {ledger.path!r}: column {name!r} cannot be added to table {table!r}, since table {others[0]!r} "
            "has a column of that name, so that columns of their joins would be renamed; add it under another name, or "
            "give this session another ledger= (its budget is then spent in addition)"
        )


def _refuse_changed_joins(ledger: LedgerQueries, before: dict[str, Schema], after: dict[str, Schema]) -> None:
    """Refuse columns with which a join that was queried would not be as it was: its columns have names of their own.

    Its answers could not be read any more, and under individual accounting not what each unit has paid for them.
    """
    for text in ledger.requests_of_joins:
        with refuse_unreadable("a request"):
            request = request_from(text)
        source = getattr(getattr(request, "plan", getattr(request, "mechanism", None)), "source", "")
        try:
            known, columns = schema_of(source, before), schema_of(source, after)
        except PlanError as error:
            words = str(error)
        else:
            if columns.items() >= known.items():
                continue
            words = "its columns would be others"
        raise LedgerError(
            f"ledger {ledger.path!r}: these columns cannot be added, since a join that was queried could not be made "
            f"any more; {words}; add them under other names, or give this session another ledger= (its budget is then "
            "spent in addition)"
        )


# --- differences in words ---------------------------------------------------------------------------------------------


def _differences(
    known: Mapping[str, str], wanted: Mapping[str, str], *, with_new: bool = False
) -> Iterator[Difference]:
    """The metadata that differ, and how, without the names of other columns.

    Added columns that a session lacks are no difference.  Metadata that `wanted` does not have yet are not compared.
    """
    for name in sorted({*known, *wanted} - {"schema", "privacy_unit", ADDED}):
        if known.get(name) != wanted.get(name) and (name in wanted or name not in ("budget", "filter")):
            yield Difference(
                name,
                f"the ledger has {_words(name, known.get(name))}, the session has {_words(name, wanted.get(name))}",
            )
    before, after = _tables(known["schema"], known["privacy_unit"]), _tables(wanted["schema"], wanted["privacy_unit"])
    if before.schemas.keys() != after.schemas.keys():
        tables = (
            " and ".join(f"table {name!r}" if name else "one table" for name in of.schemas) for of in (before, after)
        )
        yield Difference("schema", f"the ledger has {next(tables)}, the session has {next(tables)}")
        return
    may_lack = set() if "on_exhausted" in known else {*added_to(known)}
    for table, columns in before.schemas.items():
        where, own = f" of {table!r}" if table else "", after.schemas[table]
        one, other = _limits(before.units[table]), _limits(after.units[table])
        for limit in one:
            if one[limit] != other[limit]:
                yield Difference(
                    "privacy_unit", f"{limit}{where}: the ledger has {one[limit]}, the session has {other[limit]}"
                )
        for name in (*columns, *(own.keys() - columns.keys() if with_new else ())):
            if name not in own and (table, name) not in may_lack:
                yield Difference(
                    "schema", f"column {name!r}{where}: the session lacks it; it is {_short(columns[name])}"
                )
            elif name not in columns:
                yield Difference("schema", f"column {name!r}{where}: the ledger lacks that column")
            elif name in own and own[name] != columns[name]:
                words = f"column {name!r}{where}: {_column_difference(columns[name], own[name])}"
                yield Difference("schema", words, table, name)


def _words(name: str, text: str | None) -> str:
    if name == "on_exhausted":
        return "accounting='worst-case'" if text is None else f"accounting='individual', on_exhausted={text!r}"
    if name == "budget" and text is not None:
        return repr(budget_from_json(json.loads(text)))
    return "none" if text is None else text


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
    one, other = (", ".join(f"{name}={getattr(of, name)!r}" for name in fields) for of in (known, wanted))
    return f"the ledger has {one}, the session has {other}"


def _typed(value: Key) -> tuple[str, Key]:
    """A category that differs from another one where 1, 1.0 and True do."""
    return type(value).__name__, value


def _listed(values: list[Key]) -> str:
    more = len(values) - MAX_NAMED
    return ", ".join(map(repr, values[:MAX_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def _short(column: ColumnType) -> str:
    return f"Categories([{_listed(list(column.values))}])" if isinstance(column, Categories) else repr(column)
