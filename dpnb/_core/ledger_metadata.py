"""What a promise is about, as the ledger keeps it: written when a session opens, read where there is no session.

A ledger serves no other.  The budget and its filter are written by `Account`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dpnb._core.tables import PrivateTables
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.schema import Schema
from dpnb.accounting.individual import OnExhausted
from dpnb.errors import LedgerError

NOT_PRIVATE = "NOT PRIVATE: seeded test noise"
MOCK_DATA = "REHEARSAL: mock data, not real"
NOISE = {"private": None, "test_seed": NOT_PRIVATE, "mock_data": MOCK_DATA}
"""Where the noise and the rows come from, as the ledger calls it, and what is then said loudly."""


@dataclass(frozen=True)
class LedgerMetadata:
    """What a promise is about.

    Parameters
    ----------
    name : str
        Of the session.
    tables : Tables
        As declared.
    notice : str or None
        Says loudly that answers are not real or not private; one of those of `NOISE`.
    on_exhausted : str or None
        What becomes of a unit that cannot pay, under individual accounting; None under the worst case of all alike.
    """

    name: str
    tables: PrivateTables
    notice: str | None
    on_exhausted: OnExhausted | None

    def to_dict(self) -> dict[str, str]:
        """As the ledger keeps it."""
        return {
            "session_name": self.name,
            "schema": _as_text(self.tables.schemas),
            "privacy_unit": _as_text(self.tables.units),
            "noise": next(code for code, notice in NOISE.items() if notice == self.notice),
            **({} if self.on_exhausted is None else {"on_exhausted": self.on_exhausted}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, str], path: str) -> LedgerMetadata:
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
            tables = _tables(stored["schema"], stored["privacy_unit"])
            on_exhausted = msgspec.convert(stored.get("on_exhausted"), OnExhausted | None)
            pledge = cls(stored["session_name"], tables, NOISE[stored["noise"]], on_exhausted)
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            pledge = None
        # What another version of dpnb wrote may hold more than is read here.
        if pledge is None or any(stored[name] != text for name, text in pledge.to_dict().items()):
            raise LedgerError(
                f"ledger {path!r}: its promise must read as this version of dpnb writes it; it does not; use the "
                "version that its sessions use"
            )
        pledge.tables.clips_units = pledge.on_exhausted == "clip"
        return pledge


def _tables(schema: str, unit: str) -> PrivateTables:
    """One table's columns have types; of several, the tables have columns."""
    if not all(isinstance(entry.get("type"), str) for entry in msgspec.json.decode(schema).values()):
        units = msgspec.json.decode(unit, type=dict[str, PrivacyUnit])
        return PrivateTables(msgspec.json.decode(schema, type=dict[str, Schema]), units)
    columns = msgspec.json.decode(schema, type=Schema)
    return PrivateTables({"": columns}, {"": msgspec.json.decode(unit, type=PrivacyUnit)})


def _as_text(declared: Mapping[str, Any]) -> str:
    """What the promise says of one table, or of several by name."""
    content = declared.get("", declared)
    return msgspec.json.encode(content, order="deterministic").decode()
