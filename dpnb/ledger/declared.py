"""What the sessions of a ledger declare: when its file is created, or by its last row of kind ``version``.

A row has all of it: metadata (table, privacy unit, budget, filter) and the parameters that follow from them.  Before
the first request anything may change.  Afterwards columns can be added to the schema, which the entry ``added`` lists
in the order in which they were added; an answer to an earlier request is not affected by them.
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


STATED = "stated"
"""The metadata of what the curator states about the table, which rows have; it may change at any time."""


def before_stated(metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata without what the curator states."""
    return {name: text for name, text in metadata.items() if name != STATED}


class Declared(NamedTuple):
    """What is declared."""

    metadata: Mapping[str, str]
    parameters: Mapping[str, str]


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


def unsound_versions(created: Declared, rows: Iterable[ChargeSummary]) -> Iterator[ChargeSummary]:
    """The rows of kind ``version`` that change more than a session may after the requests before them."""
    declared, fixed = created, None
    for one in rows:
        if one.kind in REQUESTS:
            fixed = declared
        elif one.kind == VERSION:
            content = one.launch or {}
            declared = Declared(content.get("metadata", {}), content.get("parameters", {}))
            if fixed is not None and not extends(declared, fixed):
                yield one


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
        f"ledger {path!r}: its {what} by another session since this one was opened; nothing was charged; create the "
        "session again, with what that one declares"
    )
