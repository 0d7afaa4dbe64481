"""Snapshots of the databases of a service's tables: taken at a first start or by ``python -m dpnb refresh``."""

from __future__ import annotations

from dataclasses import dataclass

from dpnb._core.options import checked_version
from dpnb._core.tables import PrivateTables
from dpnb._sources.database_snapshots import TableSnapshot
from dpnb._sources.source import DataSource
from dpnb.errors import InvalidValueError
from dpnb.service.configuration.settings import TableSettings, read_settings
from dpnb.service.monitoring import log
from dpnb.session.backup import was_served
from dpnb.session.declaration import Declaration, read_declaration
from dpnb.session.session import Session
from dpnb.session.toml_file import replaced_after, with_text


def with_snapshots(
    settings: TableSettings, stated: Declaration, declared: PrivateTables
) -> tuple[dict[str, DataSource], str | None]:
    """The sources of a version, with the files of its snapshot for databases, and when it was taken: now, if need be.

    Refused if the version was served before, so that another table would be served under its name.
    """
    sources, databases = _sources(settings, declared)
    if not databases:
        return sources, None
    snapshot = _snapshot(stated)
    # In this order: another process may take it now, and then serve it.
    if was_served(snapshot.ledger, snapshot.version) and not snapshot.is_taken:
        raise InvalidValueError(
            f"version: must be changed, since the snapshot of {snapshot.version!r} is not in {str(snapshot.folder)!r} "
            "any more, and the database may have changed; nothing was charged; put the folder back from a copy, or "
            "give another version, for which the database is read again"
        )
    named = [one.words for one in databases.values()]
    if not snapshot.is_taken:  # said first, since a lock on the table lets the reading wait
        log("snapshot_begun", table=settings.name, version=snapshot.version, sources=named)
    if snapshot.take(databases, declared.wanted, f"{settings.place}: data"):
        log("snapshot_taken", table=settings.name, version=snapshot.version)
    return {**sources, **snapshot.files(databases, declared.wanted)}, snapshot.taken_at(databases)


def _sources(settings: TableSettings, declared: PrivateTables) -> tuple[dict[str, DataSource], dict[str, DataSource]]:
    """The sources of a table, and those of them that are databases."""
    sources = settings.data.sources(declared.schemas)
    return sources, {name: source for name, source in sources.items() if source.scheme}


def _snapshot(stated: Declaration, version: str | None = None) -> TableSnapshot:
    arguments = stated.arguments()
    given = arguments.get("version", "1") if version is None else version
    return TableSnapshot(arguments["ledger"], stated.located(lambda: checked_version(given)))


@dataclass(frozen=True)
class Refreshed:
    """The next version of a table."""

    declaration: str  # the path of the declaration, which has the version now
    files: tuple[str, ...]  # as arguments of ``python -m dpnb check``
    words: str


def take_next(path: str, name: str | None, version: str) -> Refreshed:
    """Take the snapshot of a new version while the service goes on with another, then write it in the declaration."""
    table = _table(path, name)
    declaration = table.declaration
    if declaration is None:
        raise InvalidValueError(f"{table.place}: has no declaration whose version could change; give another table")
    stated = read_declaration(declaration, Session)
    declared = stated.located(lambda: PrivateTables.of_arguments(stated.arguments(), several=stated.several))
    sources, databases = _sources(table, declared)
    if not databases:
        raise InvalidValueError(f"{table.place}: data: must have a database to read again; a new file needs no refresh")
    text, snapshot = with_text(stated, "version", version, before="name"), _snapshot(stated, version)
    with replaced_after(stated.path, text):
        new = not was_served(snapshot.ledger, version)
        if not new or not snapshot.take(databases, declared.wanted, f"{table.place}: data"):
            raise InvalidValueError(
                f"version: must be a new one, since {version!r} was served before or has a snapshot; nothing was "
                f"changed; give another, or delete the folder {str(snapshot.folder)!r} if nothing has used it"
            )
    files = {**sources, **snapshot.files(databases, declared.wanted)}
    return Refreshed(
        stated.path,
        tuple(f"{key}={file.words}" if key else file.words for key, file in files.items()),
        f"The snapshot of version {version!r} is in {snapshot.folder}, taken at {snapshot.taken_at(databases)}.\n"
        f"{stated.path} declares it now; the service goes on with the version that it has until it is restarted.\n"
        "Until then bounds, dates and categories may still be changed in it without another version.\n",
    )


def _table(path: str, name: str | None) -> TableSettings:
    tables = read_settings(path).tables
    if name is None and len(tables) == 1:
        return next(iter(tables.values()))
    if name not in tables:
        raise InvalidValueError(f"table: must be one of {', '.join(tables)}; got {name!r}; name the table to refresh")
    return tables[name]
