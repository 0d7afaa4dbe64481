"""Builds the disclosure statement of a ledger, from the parts in `results.disclosure.parts`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import Grant
from dpnb._core.core import SessionCore
from dpnb._core.ledger_metadata import LedgerMetadata, with_limit
from dpnb._core.pricing.public_knowledge import PublicSizes
from dpnb.errors import InvalidValueError, printable
from dpnb.ledger import Ledger, node_of
from dpnb.ledger.declared import (
    OF_VERSION,
    STATED,
    Declared,
    added_to,
    before_added,
    before_stated,
    extends,
    of_version,
)
from dpnb.ledger.replica import ReplicaLedger, RowsCopy
from dpnb.ledger.shared_rows import SharedRows, earlier_of
from dpnb.mechanisms.randomness import SystemNoiseSource
from dpnb.results.disclosure.parts import FORMAT, KIND, Source, Subject, Written
from dpnb.results.disclosure.report import Report
from dpnb.session.disclosure.figures import filter_of, guarantee_of, readings_of, tables_of, unit_of
from dpnb.session.disclosure.requests import (
    WHOLE,
    StatementScope,
    acts_of,
    charged_of,
    division_of,
    mechanisms_of,
    releases_of,
    versions_of,
)
from dpnb.session.disclosure.sentences import sections_of
from dpnb.session.disclosure.texts import methods_paragraph, registry_entry

PROGRAM: Literal["dpnb"] = "dpnb"
UNUSED_VERSION = ""
"""The version of the table of a core that releases nothing."""


def report_of_ledger(ledger: Ledger, scope: StatementScope = WHOLE, *, answers: bool = False) -> Report:
    """The disclosure statement of all rows that a ledger, or a copy of one analyst's rows of it, has now."""
    with closing(RowsCopy(ledger)) as rows:
        return build(rows, scope, written_now(), answers=answers)


def report_of(path: str, analyst: str | None = None, *, answers: bool = False) -> Report:
    """The disclosure statement of a ledger, which is only read; see `report_about`."""
    with closing(Ledger.read_only_copy(path)) as ledger:
        return report_about(ledger, analyst, answers=answers)


def report_about(ledger: Ledger, analyst: str | None, *, answers: bool = False) -> Report:
    """The disclosure statement of a ledger, which this process may have in use.

    For an analyst for whom a part of the budget is reserved, it is the statement that the session of this analyst
    gives: it is computed from the analyst's own rows and says nothing of the others.
    """
    if analyst is not None and part_of(ledger, analyst) is None:
        raise InvalidValueError(
            f"analyst: must be an analyst for whom a part of the budget is reserved; got {analyst!r}; leave it "
            "out for the statement of the whole ledger, which is the only one in pooled mode or without parts"
        )
    scope = WHOLE if analyst is None else StatementScope(is_copy=True, analyst=analyst)
    with rows_for(ledger, scope) as rows:
        if rows is None:  # never: all rows that there are
            raise InvalidValueError(f"ledger {ledger.path!r}: has no such rows")
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
    charged = charged_of(charges)
    releases = releases_of(core, charged, answers=answers)
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
        versions=versions_of(rows, charged),
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


def _as_stated(declared: Declared, least: Declared, stated: Collection[tuple[str, str]]) -> dict[str, str]:
    """The metadata with the added columns that are stated, and at least those of `least`, if it is about these."""
    added = [(printable(table), printable(name)) for table, name in added_to(declared.metadata)]
    kept = next((number for number, one in enumerate(added) if one not in stated), len(added))
    return before_added(declared.metadata, max(kept, len(added_to(least.metadata))))


@contextmanager
def rows_for(ledger: Ledger, scope: StatementScope, stated: Report | None = None) -> Iterator[Ledger | None]:
    """The rows of a whole ledger that a statement is about, as the session of its analyst has them.

    All rows that there are, or as many as were `stated`; None if there are fewer, or no part is reserved for the
    analyst.  A copy does not say when its declaration changed after its last row: it has the columns that are stated,
    of the version with which it has the stated hash.
    """
    count = None if stated is None else stated.source.rows
    if not scope.is_copy:
        fits = count is None or 0 <= count <= ledger.count
        with closing(RowsCopy(ledger, count if fits else 0)) as rows:
            yield rows if fits else None
        return
    metadata, parameters, root = ledger.metadata, ledger.parameters, ""
    if stated is not None:
        words = None if stated.stated is None else ledger.stated(len(stated.stated.times))
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
    rows_ = shared.after(0, wanted)[:wanted] if wanted else []
    declarations = shared.declarations()
    for index in _possible(declarations, wanted) if stated is not None else [len(declarations) - 1]:
        declared = declarations[index][1]
        known = of_version(declared.metadata)
        if stated is not None:
            columns = {(table.name, column.name) for table in stated.tables for column in table.columns}
            then = ledger.declared_before(shared.id_of(min(wanted, shared.count)))
            least = then if extends(declared, then) else Declared(before_added(declared.metadata), {})
            known = of_version(_as_stated(declared, least, columns))
        known = {**{name: text for name, text in metadata.items() if name not in OF_VERSION}, **known}
        earlier = earlier_of(declarations[:index], before_stated(known), parameters)
        with closing(ReplicaLedger(ledger.path, known, parameters, earlier)) as copy:
            copy.append(rows_)
            if index == len(declarations) - 1 or (stated is not None and copy.head == stated.source.head):
                yield copy if copy.count == wanted else None
                return


def _possible(declarations: list[tuple[int, Declared]], rows: int) -> list[int]:
    """The declarations that a copy with a number of rows may have had; the last one in any case."""
    ends = [last for last, _ in declarations]
    before = [0, *ends]
    return [at for at, last in enumerate(ends) if before[at] <= rows <= last or at == len(ends) - 1]


def write_output(output: str, text: str) -> None:
    """Write what a command was asked to write into a file."""
    try:
        Path(output).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise InvalidValueError(f"--output: must be a file that can be written; got {output!r} ({error})") from None
