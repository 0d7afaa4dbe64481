"""The metadata of a ledger: written when a session opens, and read by commands that have no session.

A ledger is used with one set of metadata only.  Budget and filter are added by `Accountant`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dpnb._core.tables import PrivateTables
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.budget import Budget
from dpnb.accounting.individual import OnExhausted
from dpnb.accounting.no_budget import NoBudget
from dpnb.errors import LedgerError
from dpnb.schema import Schema

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

    def to_dict(self) -> dict[str, str]:
        """The metadata as stored in the ledger."""
        return {
            "session_name": self.name,
            "schema": _as_text(self.tables.schemas),
            "privacy_unit": _as_text(self.tables.units),
            **({"missing": _as_text({"": self.tables.missing})} if self.tables.missing else {}),
            "noise": next(code for code, notice in NOISE.items() if notice == self.notice),
            **({} if self.on_exhausted is None else {"on_exhausted": self.on_exhausted}),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, str], path: str) -> LedgerMetadata:
        """Read what `to_dict` wrote."""
        try:
            tables = _tables(stored["schema"], stored["privacy_unit"])
            tables.missing = msgspec.json.decode(stored.get("missing", "[]"), type=tuple[str, ...])
            on_exhausted = msgspec.convert(stored.get("on_exhausted"), OnExhausted | None)
            metadata = cls(stored["session_name"], tables, NOISE[stored["noise"]], on_exhausted)
        except (KeyError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            metadata = None
        # Another version of dpnb may have written more than is read here.
        if metadata is None or any(stored[name] != text for name, text in metadata.to_dict().items()):
            raise LedgerError(
                f"ledger {path!r}: its metadata must be as this version of dpnb writes it; it is not; use the version "
                "that its sessions use"
            )
        metadata.tables.clips_units = metadata.on_exhausted == "clip"
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
