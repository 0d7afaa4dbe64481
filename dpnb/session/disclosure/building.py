"""Builds the disclosure statement of a ledger."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Literal

import msgspec

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import Grant
from dpnb._core.core import SessionCore
from dpnb._core.ledger_metadata import LedgerMetadata, with_limit
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb.errors import printable
from dpnb.ledger import Ledger, node_of
from dpnb.ledger.declared import STATED, Declared, added_to, before_added, before_stated
from dpnb.ledger.replica import ReplicaLedger, RowsCopy
from dpnb.ledger.shared_rows import SharedRows
from dpnb.mechanisms.randomness import SystemNoiseSource
from dpnb.results.disclosure.parts import FORMAT, KIND, Source, Subject, Written
from dpnb.results.disclosure.report import Report
from dpnb.session.disclosure.division import WHOLE, StatementScope, division_of
from dpnb.session.disclosure.figures import filter_of, guarantee_of, readings_of, tables_of, unit_of
from dpnb.session.disclosure.requests import acts_of, mechanisms_of, releases_of
from dpnb.session.disclosure.sentences import sections_of
from dpnb.session.disclosure.texts import methods_paragraph, registry_entry

PROGRAM: Literal["dpnb"] = "dpnb"
UNUSED_VERSION = ""
"""The version of the table of a core that releases nothing."""


def report_of_ledger(ledger: Ledger, scope: StatementScope = WHOLE, *, answers: bool = False) -> Report:
    """The disclosure statement of all rows that a ledger, or a copy of one analyst's rows of it, has now."""
    with closing(RowsCopy(ledger)) as rows:
        return build(rows, scope, written_now(), answers=answers)


def written_now() -> Written:
    """That this program writes a statement now."""
    time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    from importlib.metadata import version  # imported when first used

    return Written(time, PROGRAM, version(PROGRAM))


def build(rows: Ledger, scope: StatementScope, written: Written, *, answers: bool) -> Report:
    """The statement of exactly these rows, which do not change meanwhile; `written` says when and by which program."""
    metadata = LedgerMetadata.from_dict(rows.metadata, rows.path)
    account = Accountant.from_ledger(rows)
    notice = with_limit(metadata.notice, account.budget)
    core = SessionCore(
        id=rows.head,
        name=metadata.name,
        tables=metadata.tables,
        account=account,
        version=UNUSED_VERSION,
        public=PublicSizes(),
        source=SystemNoiseSource(),  # never drawn from
        notice=notice,
    )
    charges = rows.charges()
    releases = releases_of(core, charges, answers=answers)
    report = Report(
        kind=KIND,  # type: ignore[arg-type]  # a constant of this value
        format=FORMAT,  # type: ignore[arg-type]
        written=written,
        subject=Subject(printable(metadata.name), scope.analyst, answers),
        notice=notice,
        stated=metadata.stated,
        sections=(),  # the texts are written below, from all that is here
        unit=unit_of(account, metadata.tables),
        guarantee=guarantee_of(account, metadata),
        filter=filter_of(account),
        division=division_of(account, scope),
        readings=readings_of(account),
        releases=releases,
        mechanisms=mechanisms_of(account),
        acts=acts_of(charges),
        tables=tables_of(metadata.tables),
        table_versions=tuple(dict.fromkeys(one.table_version for one in releases)),
        methods_paragraph="",
        registry_entry="",
        source=Source(
            "copy" if scope.is_copy else "redacted" if rows.is_redacted else "ledger",
            len(charges),
            rows.head,
            charges[0].time if charges else None,
            charges[-1].time if charges else None,
        ),
    )
    return msgspec.structs.replace(
        report,
        sections=sections_of(report),
        methods_paragraph=methods_paragraph(report),
        registry_entry=registry_entry(report),
    )


def part_of(ledger: Ledger, analyst: str) -> Grant | None:
    """The part of the budget that is reserved for an analyst; None if there is none."""
    found = Accountant.from_ledger(ledger).tree.grant_named("analyst", analyst)
    return found if found is not None and found.mode == "reserved" else None


def _as_stated(metadata: Mapping[str, str], least: Declared, stated: Collection[tuple[str, str]]) -> Mapping[str, str]:
    """The metadata with the added columns that are stated, and at least those of `least`."""
    added = [(printable(table), printable(name)) for table, name in added_to(metadata)]
    kept = next((number for number, one in enumerate(added) if one not in stated), len(added))
    return before_added(metadata, max(kept, len(added_to(least.metadata))))


@contextmanager
def rows_for(
    ledger: Ledger,
    scope: StatementScope,
    count: int | None = None,
    stated: Collection[tuple[str, str]] | None = None,
    texts: int | None = None,
) -> Iterator[Ledger | None]:
    """The rows of a whole ledger that a statement is about, as the session of its analyst has them.

    `count` is their number, by default all; None if there are fewer, or no part is reserved for the analyst.  A copy
    does not say when columns were added after its last row: it has those of the tables and columns that are `stated`.
    Nor does it say when the curator stated something: it has what was stated at the time of number `texts`.
    """
    if not scope.is_copy:
        fits = count is None or 0 <= count <= ledger.count
        with closing(RowsCopy(ledger, count if fits else 0)) as rows:
            yield rows if fits else None
        return
    metadata, parameters, root = ledger.metadata, ledger.parameters, ""
    if texts is not None:
        words = ledger.stated(texts)
        metadata = {**before_stated(metadata), **({} if words is None else {STATED: words})}
    if scope.analyst is not None:
        part = part_of(ledger, scope.analyst)
        if part is None:
            yield None
            return
        metadata = {**metadata, "budget": json.dumps(part.budget.to_json())}
        parameters, root = dict(part.parameters), node_of(part.id)
    shared = SharedRows(ledger, root, shows_actors=scope.analyst is None)
    wanted = shared.count if count is None else count
    if stated is not None:
        metadata = _as_stated(metadata, ledger.declared_before(shared.id_of(min(wanted, shared.count))), stated)
    with closing(ReplicaLedger(ledger.path, metadata, parameters)) as copy:
        copy.append(shared.after(0, wanted)[:wanted] if wanted else [])
        yield copy if copy.count == wanted else None
