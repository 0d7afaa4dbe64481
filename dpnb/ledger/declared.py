"""What the sessions of a ledger declare: when its file is created, or by its last row of kind ``version``.

A row has all of it: metadata (table, privacy unit, budget, filter) and the parameters that follow from them.  Before
the first request anything may change.  Afterwards columns can be added to the schema, which the entry ``added`` lists
in the order in which they were added; an answer to an earlier request is not affected by them.  Columns and limits can
change with a version of the table of which nothing was requested yet.  A row is about what was declared before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from dpnb.errors import LedgerError
from dpnb.ledger.charge import REQUESTS, VERSION, ChargeSummary
from dpnb.ledger.connection import refuse_unreadable
from dpnb.schema import Added

ADDED = "added"
"""The metadata of the added columns; absent without any."""

OF_VERSION = "schema", ADDED, "privacy_unit", "missing", "separator", "decimal", "encoding", "date_format"
"""The metadata that a new version of the table may change, except for the column and the type of the privacy unit."""


STATED = "stated"
"""The metadata of what the curator states about the table, which rows have; it may change at any time."""


def before_stated(metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata without what the curator states."""
    return {name: text for name, text in metadata.items() if name != STATED}


class Declared(NamedTuple):
    """What is declared."""

    metadata: Mapping[str, str]
    parameters: Mapping[str, str]


Earlier = tuple[tuple[int, Declared], ...]
"""Earlier declarations, each with the last row about it."""


class DeclaredPeriod(NamedTuple):
    """A declaration with the columns that were added to it; `start` is the row before the first one about it."""

    start: int
    declared: Declared


def declared_in(number: int, details: str) -> Declared:
    """What a row of kind ``version`` declares, from its number and its details."""
    with refuse_unreadable(f"row {number}"):
        content = json.loads(details)
        declared = Declared(content["metadata"], content["parameters"])
        if not all(isinstance(text, str) for part in declared for item in part.items() for text in item):
            raise TypeError
    return declared


def added_to(metadata: Mapping[str, str]) -> Added:
    """The columns that were added to the schema."""
    with refuse_unreadable("the metadata"):
        return msgspec.json.decode(metadata.get(ADDED, "[]"), type=Added)


def before_added(metadata: Mapping[str, str], kept: int = 0) -> dict[str, str]:
    """The metadata with only the first `kept` of the added columns."""
    added, before = added_to(metadata), dict(metadata)
    if len(added) <= kept:
        return before
    with refuse_unreadable("the metadata"):
        schema: dict[str, Any] = msgspec.json.decode(metadata["schema"])
        for table, name in added[kept:]:
            del (schema[table] if table else schema)[name]
    before |= {"schema": msgspec.json.encode(schema).decode(), ADDED: msgspec.json.encode(added[:kept]).decode()}
    if not kept:
        del before[ADDED]
    return before


def extends(now: Declared, before: Declared) -> bool:
    """Whether a declaration is an earlier one with further columns, if any."""
    return before == Declared(before_added(now.metadata, len(added_to(before.metadata))), now.parameters)


def of_version(metadata: Mapping[str, str]) -> dict[str, str]:
    """The columns and limits among the metadata."""
    return {name: metadata[name] for name in OF_VERSION if name in metadata}


def shape_of(metadata: Mapping[str, str]) -> dict[str, str]:
    """The columns and limits that a version declares, without those added: answers of one shape can be read alike."""
    return of_version(before_added(metadata))


def lasting(declared: Declared) -> tuple[dict[str, str], Mapping[str, str], frozenset[tuple[object, object]]]:
    """What no version changes: the other metadata, the parameters, and the column and type of the privacy unit."""
    others = {name: text for name, text in declared.metadata.items() if name not in OF_VERSION}
    with refuse_unreadable("the metadata"):
        unit: dict[str, Any] = msgspec.json.decode(declared.metadata["privacy_unit"])
        units = unit.values() if isinstance(unit.get("column", {}), dict) else [unit]  # of several tables, or of one
        identities = frozenset((one["column"], one.get("type")) for one in units)
    return others, declared.parameters, identities


def unsound_versions(created: Declared, rows: Iterable[ChargeSummary]) -> Iterator[ChargeSummary]:
    """The rows that change more than a session may after the requests before them.

    Those are rows of kind ``version`` that change what lasts, or the columns and limits of a version that was used; and
    requests for a used version while another one's columns and limits were declared.
    """
    declared, fixed, last = created, dict[str, Declared](), None
    for one in rows:
        known = fixed.get(one.table_version)
        if one.kind == VERSION:
            content = one.launch or {}
            declared = Declared(content.get("metadata", {}), content.get("parameters", {}))
            if last is None or (lasting(declared) == lasting(last) and (known is None or extends(declared, known))):
                continue
            yield one
        elif one.kind in REQUESTS:
            if known is not None and known is not declared and not extends(declared, known):
                yield one
            fixed[one.table_version] = last = declared


def refuse_replaced(path: str, opened: Declared, now: Declared) -> None:
    """Refuse a request of a session that was opened when the ledger declared something else.

    Added columns change nothing for it, except under individual accounting: what each unit has paid is computed from
    all requests, also those that use these columns.
    """
    is_extended = extends(now, opened)
    if now == opened or (is_extended and "on_exhausted" not in opened.metadata):
        return
    what = "schema was extended" if is_extended else "declaration was changed"
    raise LedgerError(
        f"ledger {path!r}: its {what} by another session since this one was opened, perhaps for another version of the "
        "table; nothing was charged; create the session again, with what that one declares, or with its own version="
    )
