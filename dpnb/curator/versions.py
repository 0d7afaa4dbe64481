"""The versions of a table in a ledger, and what a declaration would change there: for the curator, before it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.later_sessions import with_sampled
from dpnb._core.ledger_metadata import NOISE, LedgerMetadata
from dpnb.accounting.exact import decimal_up
from dpnb.errors import DpnbError, printable
from dpnb.ledger import MEMORY, Ledger
from dpnb.ledger.charge import REQUESTS, ChargeSummary
from dpnb.ledger.declared import Declared, extends, shape_of
from dpnb.render.numbers import format_percent_up
from dpnb.render.sessions import column_words, unit_words
from dpnb.session.disclosure.requests import changes

MAX_LINES = 20
"""Differences that are listed."""


@dataclass(frozen=True)
class LedgerChanges:
    """What a session with a declaration would change in its ledger, in sentences."""

    path: str
    sentences: tuple[str, ...]
    refusal: str | None = None  # why it could not be opened


def changes_in(path: str, wanted: Declared, version: str, sampled: Fraction | None = None) -> LedgerChanges | None:
    """What a session that declares `wanted` for a version would change in a ledger; None if there is none yet."""
    if path == MEMORY or not Path(path).exists():
        return None
    if wanted.metadata["noise"] == "mock_data":  # of the session that only read the declaration
        real = next(code for code, notice in NOISE.items() if notice is None)
        wanted = Declared({**wanted.metadata, "noise": real}, wanted.parameters)
    try:
        with closing(Ledger.read_only_copy(path)) as ledger:
            after = with_sampled(ledger, wanted, sampled, version)
            return LedgerChanges(path, tuple(map(printable, _sentences(ledger, after, version))))
    except DpnbError as error:
        return LedgerChanges(path, (), printable(str(error)))


def _sentences(ledger: Ledger, after: Declared, version: str) -> Iterator[str]:
    used = _requests_by_version(ledger)
    before = ledger.declared
    changed = shape_of(after.metadata) != shape_of(before.metadata)
    new = version not in used
    if (after == before and not new) or not used:  # until something is charged anything may change
        return
    others = [f"{_requests(rows)} of version {name!r}" for name, rows in used.items() if name != version]
    if new:
        yield f"Version {version!r} is new: its answers are new ones, and none combines with those of other versions."
    elif changed:
        yield (
            f"Version {version!r} was used before: its recorded answers are free again, and the first charge, or the "
            "start of a service, declares it again."
        )
    if others:
        yield f"What was charged stays: {', '.join(others)}. Their answers are kept, for their own version."
    if changed:
        yield from _differences(before, after, version)
        yield from _ending(ledger, version)
    elif after != before:
        yield f"Columns are added, which changes nothing else: {', '.join(_added(before, after))}."
    if new or changed:
        yield from _individual_cost(ledger, version)


def _requests_by_version(ledger: Ledger) -> dict[str, list[ChargeSummary]]:
    found: dict[str, list[ChargeSummary]] = {}
    for row in ledger.summaries():
        if row.kind in REQUESTS:
            found.setdefault(row.table_version, []).append(row)
    return found


def _requests(rows: list[ChargeSummary]) -> str:
    return f"{len(rows):,} request{'s' if len(rows) != 1 else ''}"


def _differences(before: Declared, after: Declared, version: str) -> Iterator[str]:
    """What is declared otherwise, as far as it is listed."""
    words = changes(before, after)
    yield f"Version {version!r} declares other columns or limits than the ledger does now:"
    for one in words[:MAX_LINES]:
        yield f"- {one}"
    if len(words) > MAX_LINES:
        yield f"- and {len(words) - MAX_LINES:,} more"


def _added(before: Declared, after: Declared) -> list[str]:
    known, now = (LedgerMetadata.from_dict(one.metadata, "").tables.schemas for one in (before, after))
    return [
        repr(name) if not table else f"{name!r} of {table!r}"
        for table, columns in now.items()
        for name in columns
        if name not in known.get(table, {})
    ]


def _ending(ledger: Ledger, version: str) -> Iterator[str]:
    """What ends when another declaration is made."""
    tree = Accountant.from_ledger(ledger).tree
    ends = [
        f"{launch.kind} {launch.name!r}"
        for launch in tree.sync().values()
        if launch.continues_with(launch.version) and launch.version != version and not tree.is_closed(launch)
    ]
    yield "Open sessions of other versions are refused from then on, and charged nothing; analysts connect again."
    if ends:
        more = f" and {len(ends) - MAX_LINES:,} more" if len(ends) > MAX_LINES else ""
        yield (
            f"What is open ends, and what it was charged at launch is not given back: {', '.join(ends[:MAX_LINES])}"
            f"{more}."
        )


def _individual_cost(ledger: Ledger, version: str) -> Iterator[str]:
    """What every unit is charged in a version for the requests of other ones, under individual accounting."""
    account = Accountant.from_ledger(ledger)
    if not account.individual:
        return
    share = account.sync().share_of_others(version)
    words = format_percent_up(decimal_up(share)) if share else "0%"
    yield (
        "Under individual accounting every unit is charged the worst case for all requests of other versions, since "
        f"its rows may have been others there: {words} of the budget of each unit, whatever it has paid in fact."
        + (" No unit could pay for anything more." if share >= 1 else "")
    )


# --- the versions of a ledger, in a statement -------------------------------------------------------------------------


def metadata_of(ledger: Ledger, version: str | None) -> Mapping[str, str]:
    """What a ledger declares for a version of the table: what it was last queried with, or what is declared now."""
    own, now = None if version is None else ledger.declared_at_last_request(version), ledger.declared
    return (now if own is None or extends(now, own) else own).metadata


def version_facts(ledger: Ledger) -> tuple[tuple[str, str], ...]:
    """A line for each version of the table, if there are several: its requests, their dates, and what it declares."""
    used, times = _requests_by_version(ledger), ledger.times()
    if len(used) < 2:
        return ()
    return tuple(
        (
            f"version {version}",
            f"{_requests(rows)}, {times[rows[0].id][:10]} to {times[rows[-1].id][:10]}; "
            f"{_columns(LedgerMetadata.from_dict(ledger.declared_before(rows[-1].id).metadata, ledger.path))}",
        )
        for version, rows in used.items()
    )


def _columns(metadata: LedgerMetadata) -> str:
    tables = metadata.tables
    return "; ".join(
        f"{f'table {table}: ' if table else ''}one unit is {unit_words(tables.units[table])}; columns "
        + ", ".join(
            f"{name} ({kind}{f' {values}' if values and len(values) <= MAX_VALUES else ''})"
            for name, declared in columns.items()
            for kind, values, *_ in [column_words(declared, tables.reading.missing)]
        )
        for table, columns in tables.schemas.items()
    )


MAX_VALUES = 60
"""Characters of the values of a column that are shown."""
