"""What a promise is about, as the ledger keeps it: written when a session opens, read where there is no session.

A ledger serves no other.  The budget and its filter are written by `Account`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import msgspec

from dpnb.accounting.individual import OnExhausted
from dpnb.errors import LedgerError
from dpnb.query.schema import MIDNIGHT, Bounded, Categories, Dates, Outside, Schema, Text
from dpnb.query.unit import PrivacyUnit
from dpnb.session.tables import Tables

PRIVATE = "private"
INDIVIDUAL = "individual, "


@dataclass(frozen=True)
class Pledge:
    """What a promise is about.

    Parameters
    ----------
    name : str
        Of the session.
    tables : Tables
        As declared.
    notice : str or None
        Says loudly that answers are not real or not private.
    on_exhausted : str or None
        What becomes of a unit that cannot pay, under individual accounting; None under the worst case of all alike.
    """

    name: str
    tables: Tables
    notice: str | None
    on_exhausted: OnExhausted | None

    def to_texts(self) -> dict[str, str]:
        """As the ledger keeps it."""
        accounting = {} if self.on_exhausted is None else {"accounting": f"{INDIVIDUAL}{self.on_exhausted}"}
        return {
            "name": self.name,
            "schema": _as_text({name: _stored(schema) for name, schema in self.tables.schemas.items()}),
            "privacy unit": _as_text(self.tables.units),
            "noise": self.notice or PRIVATE,
            **accounting,
        }

    @classmethod
    def from_texts(cls, stored: Mapping[str, str], path: str) -> Pledge:
        """What `to_texts` wrote.

        Parameters
        ----------
        stored : mapping of str to str
        path : str
            Of the ledger, for the error.

        Raises
        ------
        LedgerError
            It does not read as it was written.
        """
        try:
            tables = _tables(stored["schema"], stored["privacy unit"])
            notice = None if stored["noise"] == PRIVATE else stored["noise"]
            pledge = cls(stored["name"], tables, notice, _on_exhausted(stored.get("accounting")))
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            pledge = None
        # What another version of dpnb wrote may hold more than is read here.
        if pledge is None or any(stored[name] != text for name, text in pledge.to_texts().items()):
            raise LedgerError(
                f"ledger {path!r}: its promise must read as this version of dpnb writes it; it does not; use the "
                "version that its sessions use"
            )
        pledge.tables.divisible = pledge.on_exhausted == "clip"
        return pledge


class _Dates(msgspec.Struct, frozen=True, tag="dates", tag_field="type", omit_defaults=True):
    """`Dates` as ledgers have always kept them: a day without a time is its first instant, at the end too."""

    first: str
    last: str
    outside: Outside = "clamp"


_Stored = Bounded | Categories | Text | _Dates


def _stored(schema: Schema) -> dict[str, _Stored]:
    return {
        name: _Dates(column.first, column.last.removesuffix(MIDNIGHT), column.outside)
        if isinstance(column, Dates)
        else column
        for name, column in schema.items()
    }


def _read(stored: Mapping[str, _Stored]) -> Schema:
    return {
        name: Dates(column.first, column.last if "T" in column.last else column.last + MIDNIGHT, column.outside)
        if isinstance(column, _Dates)
        else column
        for name, column in stored.items()
    }


def _tables(schema: str, unit: str) -> Tables:
    """One table's columns have types; of several, the tables have columns."""
    if not all(isinstance(entry.get("type"), str) for entry in msgspec.json.decode(schema).values()):
        schemas = msgspec.json.decode(schema, type=dict[str, dict[str, _Stored]])
        units = msgspec.json.decode(unit, type=dict[str, PrivacyUnit])
        return Tables({name: _read(columns) for name, columns in schemas.items()}, units)
    columns = _read(msgspec.json.decode(schema, type=dict[str, _Stored]))
    return Tables({"": columns}, {"": msgspec.json.decode(unit, type=PrivacyUnit)})


def _on_exhausted(accounting: str | None) -> OnExhausted | None:
    if accounting is None:
        return None
    modes: dict[str, OnExhausted] = {f"{INDIVIDUAL}{mode}": mode for mode in get_args(OnExhausted)}
    return modes[accounting]


def _as_text(declared: Mapping[str, Any]) -> str:
    """What the promise says of one table, or of several by name."""
    content = declared.get("", declared)
    return msgspec.json.encode(content, order="deterministic").decode()
