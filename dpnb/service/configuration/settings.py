"""The settings of a service: the file ``curator.toml``.

The curator writes once where the service listens and which tables it has; each table names its declaration, which is
the file that `Session.from_toml` and ``python -m dpnb check`` use, or a function that returns its session.  An error
begins with the file and the line.  Relative paths are resolved against the file's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from dpnb._compile.work import MB, WorkLimits
from dpnb._core.options import checked_name
from dpnb._sources.formats import IN_WORDS, format_of
from dpnb._sources.source import DataSource
from dpnb.errors import InvalidValueError, SchemaError
from dpnb.service.configuration.parts import DIVISION_KEYS, DivisionSettings, read_division
from dpnb.service.configuration.ports import (
    PortAddress,
    SocketAddress,
    is_loopback,
    read_address,
    read_cockpit,
)
from dpnb.service.configuration.reading import (
    SettingError,
    existing_file,
    fault,
    file_path,
    flag,
    keys_of,
    matching,
    read_struct,
    whole,
)
from dpnb.session.toml_file import KeyPath, TomlFile, read_toml

EXAMPLE = "curator.toml"
DEFAULT_SERVICE = "dpnb"
SERVICE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
"""The name of a service in JupyterHub, as a scope and an address may contain it."""

SOURCE, QUERY = "source", "query"
"""The keys of a source that is written as a table."""


@dataclass(frozen=True)
class DataSetting:
    """What is written as ``data``, which is one source or one for each table: that the declaration says."""

    one: DataSource | None
    several: tuple[tuple[str, DataSource], ...] = ()  # by the names of the tables

    def sources(self, tables: Collection[str]) -> dict[str, DataSource]:
        """The sources of the declared tables, whose name is empty if there is one; perhaps of other tables."""
        return {"": self.one} if self.one is not None and [*tables] == [""] else dict(self.several)


def _data(value: Any, folder: Path) -> DataSetting:
    if not isinstance(value, dict) or not value:
        return DataSetting(_source(value, folder))
    one, several, faults = None, dict[str, DataSource](), []
    if SOURCE in value and value.keys() <= {SOURCE, QUERY}:
        try:
            one = _source(value, folder)
        except SettingError as error:
            faults.append(error)
    for name, entry in value.items():
        try:
            several[name] = _source(entry, folder)
        except SettingError as error:
            faults.append(SettingError(error.rule, error.remedy, got=error.got or repr(entry), key=name))
    if one is None and len(several) < len(value):
        raise faults[0]
    return DataSetting(one, tuple(several.items()) if len(several) == len(value) else ())


def _source(value: Any, folder: Path) -> DataSource:
    """One source, a text or a table with the keys ``source`` and ``query``."""
    query = ""
    if isinstance(value, dict) and SOURCE in value and value.keys() <= {SOURCE, QUERY}:
        value, query = value[SOURCE], value.get(QUERY, "")
    if not isinstance(value, str) or not value or not isinstance(query, str):
        raise SettingError("must be the path of a file", "write it in quotes")
    try:
        source = DataSource.parse(value, query)
    except SchemaError as error:
        rule, _, remedy = str(error).partition("; ")
        raise SettingError(rule, remedy, got="one that is not shown") from None
    if not source.scheme:
        if query:
            raise SettingError("must have no query, which is for a database", "remove it", got=repr(value))
        existing_file(source.location, folder)
    if format_of(source.beside(folder)) is None:
        raise SettingError(f"must be {IN_WORDS}", "convert the table to one", got=repr(source.words))
    return source.beside(folder)


def _function(value: Any, folder: Path) -> tuple[Path, str]:
    """A Python file, and the function in it that returns a session."""
    file, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if file.endswith(".py") and colon and function.isidentifier():
        return existing_file(file, folder), function
    raise SettingError(
        "must be a Python file and a function in it that returns a session", "for example 'visits.py:open_session'"
    )


def _hub_address(value: Any, folder: Path) -> str:
    """The address of the Hub's API, without a final slash; a refused one may have a password, so it is not repeated."""
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() else None
        port = None if parts is None else parts.port  # raises for what is no port
    except ValueError:
        parts = port = None
    if parts is None or not parts.hostname or port == 0:
        found = "it is no address"
    elif parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        found = "it has a user name, a password, a query or a fragment"
    elif parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
        found = "plain http to another machine would show the tokens to the network"
    else:
        return str(value).rstrip("/")
    raise SettingError(
        "must be the address of the Hub's API, to which the tokens of users are sent",
        "for example 'http://127.0.0.1:8081/hub/api' on the machine of the Hub, or 'https://hub.example.org/hub/api'",
        got=f"one that is not shown, since {found}",
    )


# --- the settings -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HubSettings:
    """The JupyterHub whose users may connect."""

    api_url: Annotated[str, _hub_address]  # without a final slash
    service: Annotated[
        str,
        matching(
            SERVICE,
            "the name of the service in jupyterhub_config.py, of small letters, digits, '-' and '_'",
            DEFAULT_SERVICE,
        ),
    ] = DEFAULT_SERVICE  # the name under which the Hub has the service

    @property
    def access_scope(self) -> str:
        """The scope of a token that may connect."""
        return f"access:services!service={self.service}"

    @property
    def curator_scope(self) -> str:
        """The scope of a curator's token, beside the other."""
        return f"custom:{self.service}:curate"


Quota = Annotated[int, whole(1, 10**6, 100)]


@dataclass(frozen=True)
class Limits:
    """How much one analyst may ask.

    `connections` limits those from one address, or of one account of the machine, unless the service is behind a proxy;
    and the requests and streams of one analyst that are open at once.  Sizes in ``mb`` are millions of bytes.
    """

    requests_per_minute: Quota = 1200
    cpu_seconds_per_minute: Quota = 60  # of what reads no rows: decoding, refused and free requests, replies
    running: Quota = 16  # requests about one table that run or wait; likewise bodies that are received and decoded
    streams: Quota = 20  # of events about one table, open at once
    wait_seconds: Quota = 600  # that a request may wait for others before it is refused, uncharged
    connections: Quota = 100
    stored_mb: Quota = 100  # rows of one analyst in the ledger of one table
    launches_mb: Quota = 20  # of these, rows of launches, whose content the service keeps in memory
    disk_reserve_mb: Quota = 100  # free space of the ledger's disk below which nothing is charged
    query_features: Quota = 10_000  # of a row that one query or batch may sum
    query_memory_mb: Quota = 1500  # of one query or batch, besides the tables
    answer_mb: Quota = 50  # answers of one query or batch in the ledger

    @property
    def work(self) -> WorkLimits:
        """The limits of the work of one query or batch, which follows from its plan."""
        return WorkLimits(features=self.query_features, memory=self.query_memory_mb * MB, answer=self.answer_mb * MB)


@dataclass(frozen=True)
class TableSettings:
    """One table of the service."""

    name: str  # under which analysts open it
    place: str = field(compare=False)  # file and line in the settings, for errors
    declaration: Annotated[Path | None, existing_file] = None  # the curator's
    data: Annotated[DataSetting, _data] = DataSetting(None)
    session: Annotated[tuple[Path, str] | None, _function] = None  # instead of both
    division: DivisionSettings = field(default_factory=DivisionSettings)


@dataclass(frozen=True)
class Settings:
    """The settings of a service."""

    path: Path  # of the settings' own file
    address: SocketAddress | PortAddress
    tables: dict[str, TableSettings]
    tokens: Annotated[Path, file_path]  # the file of the access tokens
    heads: Annotated[Path, file_path]  # the folder of the files that name the last row of each ledger
    behind_proxy: Annotated[bool, flag]  # if so, connections are not limited by where they come from
    log: Annotated[Path | None, file_path] = None  # None for the standard error
    time_grid: Annotated[bool, flag] = True  # whether replies leave at the points of a time grid
    limits: Annotated[Limits, Limits] = field(default_factory=Limits)
    jupyterhub: Annotated[HubSettings | None, HubSettings] = None
    cockpit: PortAddress | None = None  # where the curator's page is served


SERVICE_KEYS = keys_of(Settings, SocketAddress, PortAddress) | {"cockpit": False, "tables": False}
TABLE_KEYS = keys_of(TableSettings) | DIVISION_KEYS


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """Read and check the settings of a service; the files that they name are not opened."""
    file = read_toml(path, EXAMPLE)
    file.refuse_keys(file.content, SERVICE_KEYS, ())
    address = read_address(file)
    is_plain = isinstance(address, PortAddress) and address.tls is None
    defaults = {"tokens": "tokens.json", "heads": str(_state_folder() / "heads"), "behind_proxy": is_plain}
    return read_struct(
        file,
        Settings,
        defaults | file.content,
        (),
        others=SERVICE_KEYS,
        path=Path(file.path).absolute(),
        address=address,
        tables=_read_tables(file),
        cockpit=read_cockpit(file, address) if "cockpit" in file.content else None,
    )


def _state_folder() -> Path:
    """The folder for what the service keeps: systemd's ``StateDirectory=``, or that of this user."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    usual = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (usual if usual.is_absolute() else Path("~/.local/state").expanduser()) / "dpnb"


def _read_tables(file: TomlFile) -> dict[str, TableSettings]:
    entries = file.content.get("tables")
    if not isinstance(entries, dict) or not entries:
        example = 'write a line [tables.visits] and below it declaration = "visits.toml" and data = "visits.csv"'
        raise fault(file, ("tables",), entries, "must name at least one table", example)
    tables: dict[str, TableSettings] = {}
    declared: dict[Path, str] = {}
    for name, entry in entries.items():
        at = ("tables", name)
        tables[name] = table = _read_table(file, name, entry, at)
        first = name if table.declaration is None else declared.setdefault(table.declaration.resolve(), name)
        if first != name:
            rule = f"must be a file of this table only, since it names the ledger, and not that of tables.{first}"
            remedy = "remove one of the tables, or give it a declaration of its own"
            raise fault(file, (*at, "declaration"), entry["declaration"], rule, remedy)
    return tables


def _read_table(file: TomlFile, name: str, entry: Any, at: KeyPath) -> TableSettings:
    try:
        checked_name(name)
    except InvalidValueError as error:
        raise file.fault(InvalidValueError, at, f"tables: {error}; rename the table") from None
    given = [key for key in ("session", "declaration", "data") if isinstance(entry, dict) and key in entry]
    if given[:1] == ["session"] and len(given) > 1:
        rule = "cannot be given with session, which builds the whole session"
        raise fault(file, (*at, given[1]), entry[given[1]], rule, "remove one of them")
    table = read_struct(file, TableSettings, entry, at, others=TABLE_KEYS, name=name, division=DivisionSettings())
    for key in ("declaration", "data"):
        if key not in given and table.session is None:
            raise file.fault(InvalidValueError, at, f"{key!r} is missing in tables.{name}; add it, or session")
    return replace(table, division=read_division(file, entry, at))
