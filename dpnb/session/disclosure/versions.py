"""The versions of the table that were queried: when, what each of them declared, and what changed."""

from __future__ import annotations

from collections.abc import Sequence

from dpnb._core.ledger_metadata import LedgerMetadata, differences
from dpnb.errors import printable
from dpnb.ledger import Charge, Ledger
from dpnb.ledger.declared import STATED, Declared, extends
from dpnb.results.disclosure.parts import ReportedTable, ReportedVersion
from dpnb.session.disclosure.figures import tables_of


def versions_of(ledger: Ledger, charges: Sequence[Charge]) -> tuple[ReportedVersion, ...]:
    """The versions that charged requests were about, in the order of their first requests."""
    by_version: dict[str, list[Charge]] = {}
    for charge in charges:
        by_version.setdefault(charge.table_version, []).append(charge)
    return tuple(
        ReportedVersion(printable(version), len(rows), rows[0].time, rows[-1].time, _other_tables(ledger, rows[-1]))
        for version, rows in by_version.items()
    )


def changes(before: Declared, after: Declared) -> list[str]:
    """What is declared otherwise than before, in words."""
    return [
        one.words.replace("the ledger has", "it was", 1)
        .replace("the session has", "it is now", 1)
        .replace("the session lacks it; it is", "is removed; it was")
        .replace("the session lacks", "no longer")
        .replace("the ledger lacks that column", "is new")
        .replace("the ledger lacks", "new:")
        for one in differences(before.metadata, after.metadata, with_new=True)
    ]


def _other_tables(ledger: Ledger, last: Charge) -> tuple[ReportedTable, ...] | None:
    """The tables that were declared for a row, if they are others than those that are declared now."""
    then = ledger.declared_before(last.id)
    if extends(ledger.declared, then):
        return None
    words = {name: text for name, text in ledger.metadata.items() if name == STATED}  # the label of a unit
    return tables_of(LedgerMetadata.from_dict({**then.metadata, **words}, ledger.path).tables)
