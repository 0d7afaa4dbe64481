"""The settings of a service: the file ``curator.toml``.

The curator writes once where the service listens and which tables it has; each table names its declaration, which is
the file that `Session.from_toml` and ``python -m dpnb check`` use, or a function that returns its session.  An error
begins with the file and the line.  Relative paths are resolved against the file's folder.
"""

from __future__ import annotations

import grp
import os
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dpnb._compile.work import MB, WorkLimits
from dpnb._core.options import checked_name
from dpnb.errors import DpnbError, InvalidValueError
from dpnb.service.access.hub_settings import HubSettings, read_hub, read_prefix
from dpnb.service.configuration.parts import DivisionSettings, read_division
from dpnb.service.configuration.ports import PortAddress, read_port
from dpnb.session.table_files import FORMATS, format_of
from dpnb.session.toml_file import KeyPath, TomlFile, read_toml

EXAMPLE = "curator.toml"
SERVICE_KEYS = dict.fromkeys(
    (
        *("socket", "group", "host", "port", "names", "tls", "tokens", "heads", "log", "metrics", "time_grid"),
        "limits",
        *("cockpit", "tables", "behind_proxy"),
        *("prefix", "jupyterhub"),
    ),
    False,
)
TABLE_KEYS = dict.fromkeys(("declaration", "data", "session", "mode", "projects", "analysts"), False)
COCKPIT_KEYS = dict.fromkeys(("host", "port", "names", "tls"), False)
LARGEST_LIMIT = 10**6
DEFAULT_PORT, COCKPIT_PORT = 8443, 8444
LONGEST_PATH = 100
"""Bytes of a Unix socket's path; the operating system allows little more."""


@dataclass(frozen=True)
class SocketAddress:
    """A Unix socket, for analysts on the same machine."""

    path: Path  # in a folder of the curator's
    group: int | None = None  # number of the group whose members may connect; without one only the curator's own user

    @property
    def url(self) -> str:
        """What an analyst passes to `dpnb.connect`."""
        return f"unix://{self.path}"


@dataclass(frozen=True)
class Limits:
    """How much one analyst may ask.

    `connections` limits those from one address, or of one account of the machine, unless the service is behind a proxy;
    and the requests and streams of one analyst that are open at once.  Sizes in ``mb`` are millions of bytes.
    """

    requests_per_minute: int = 1200
    cpu_seconds_per_minute: int = 60  # of what reads no rows: decoding, refused and free requests, replies
    running: int = 16  # requests about one table that run or wait; likewise bodies that are received and decoded
    streams: int = 20  # of events about one table, open at once
    wait_seconds: int = 600  # that a request may wait for others before it is refused, uncharged
    connections: int = 100
    stored_mb: int = 100  # rows of one analyst in the ledger of one table
    launches_mb: int = 20  # of these, rows of launches, whose content the service keeps in memory
    disk_reserve_mb: int = 100  # free space of the ledger's disk below which nothing is charged
    query_features: int = 10_000  # of a row that one query or batch may sum
    query_memory_mb: int = 1500  # of one query or batch, besides the tables
    answer_mb: int = 50  # answers of one query or batch in the ledger

    @property
    def work(self) -> WorkLimits:
        """The limits of the work of one query or batch, which follows from its plan."""
        return WorkLimits(features=self.query_features, memory=self.query_memory_mb * MB, answer=self.answer_mb * MB)


@dataclass(frozen=True)
class TableSettings:
    """One table of the service."""

    name: str  # under which analysts open it
    place: str = field(compare=False)  # file and line in the settings, for errors
    declaration: Path | None = None  # the curator's
    data: tuple[tuple[str, str], ...] = ()  # table of the declaration, and file; the name of a single table is empty
    builder: tuple[Path, str] | None = None  # instead of both: a Python file, and its function that returns a session
    division: DivisionSettings = field(default_factory=DivisionSettings)


@dataclass(frozen=True)
class Settings:
    """The settings of a service."""

    path: Path  # of the settings' own file
    address: SocketAddress | PortAddress
    tokens: Path  # the file of the access tokens
    heads: Path  # the folder of the files that name the last row of each ledger
    log: Path | None  # None for the standard error
    tables: dict[str, TableSettings]
    metrics: Path | None = None  # the socket of the curator's figures
    time_grid: bool = True  # whether replies leave at the points of a time grid
    limits: Limits = field(default_factory=Limits)
    jupyterhub: HubSettings | None = None
    cockpit: PortAddress | None = None  # where the curator's page is served
    behind_proxy: bool = False  # if so, connections are not limited by where they come from


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """Read and check the settings of a service; the files that they name are not opened."""
    return _SettingsReader(read_toml(path, EXAMPLE)).settings()


def _state_folder() -> Path:
    """The folder for what the service keeps: systemd's ``StateDirectory=``, or that of this user."""
    given = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    if given:
        return Path(given)
    usual = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (usual if usual.is_absolute() else Path("~/.local/state").expanduser()) / "dpnb"


class _SettingsReader:
    """Checks the content of one file."""

    def __init__(self, file: TomlFile) -> None:
        self._file, self._content = file, file.content
        self._path = Path(file.path).absolute()

    def settings(self) -> Settings:
        self._file.refuse_keys(self._content, SERVICE_KEYS, ())
        tables = self._content.get("tables")
        if not isinstance(tables, dict) or not tables:
            raise self._fault(
                ("tables",),
                f"tables: must name at least one table; got {tables!r}; write a line [tables.visits] and below it "
                'declaration = "visits.toml" and data = "visits.csv"',
            )
        return Settings(
            path=self._path,
            address=self._address(),
            tokens=self._file_of(("tokens",), "tokens.json"),
            heads=self._file_of(("heads",)) if "heads" in self._content else _state_folder() / "heads",
            log=self._file_of(("log",)) if "log" in self._content else None,
            tables=self._tables(tables),
            metrics=self._file_of(("metrics",)) if "metrics" in self._content else None,
            time_grid=self._flag("time_grid", True),
            limits=self._limits(),
            jupyterhub=read_hub(self._file),
            cockpit=self._cockpit(),
            behind_proxy=self._behind_proxy(),
        )

    def _behind_proxy(self) -> bool:
        """Whether a proxy makes the connections; without TLS a port is on the loopback, where one ends, or a tunnel."""
        address = self._address()
        return self._flag("behind_proxy", isinstance(address, PortAddress) and address.tls is None)

    def _flag(self, key: str, default: bool) -> bool:
        value = self._content.get(key, default)
        if not isinstance(value, bool):
            raise self._fault((key,), f"{key}: must be true or false; got {value!r}")
        return value

    def _limits(self) -> Limits:
        entry = self._content.get("limits", {})
        if not isinstance(entry, dict):
            raise self._fault(("limits",), f"limits: must be a table; got {entry!r}; write a line [limits]")
        self._file.refuse_keys(entry, dict.fromkeys((one.name for one in fields(Limits)), False), ("limits",))
        for key, value in entry.items():
            if type(value) is not int or not 0 < value <= LARGEST_LIMIT:
                raise self._fault(
                    ("limits", key), f"{key}: must be a whole number from 1 to {LARGEST_LIMIT:,}; got {value!r}"
                )
        return Limits(**entry)

    def _cockpit(self) -> PortAddress | None:
        if "cockpit" not in self._content:
            return None
        entry = self._content["cockpit"]
        if not isinstance(entry, dict):
            raise self._fault(("cockpit",), f"cockpit: must be a table; got {entry!r}; write a line [cockpit]")
        self._file.refuse_keys(entry, COCKPIT_KEYS, ("cockpit",))
        address = read_port(self._file, ("cockpit",), entry, entry.get("host", "127.0.0.1"), COCKPIT_PORT)
        own = self._address()
        if isinstance(own, PortAddress) and address.port and own.port == address.port:
            raise self._fault(
                ("cockpit", "port"),
                "cockpit.port: must not be the service's own port, so that the page has an origin of its own; got "
                f"{address.port} for both; leave one of them out",
            )
        return address

    # --- address ------------------------------------------------------------------------------------------------

    def _address(self) -> SocketAddress | PortAddress:
        entries = self._content
        if "host" not in entries:
            for key in ("port", "names", "tls", "prefix"):
                if key in entries:
                    raise self._fault((key,), f"{key}: is used only with host; got no host; add it, or remove {key}")
            path = self._file_of(("socket",), "run/dpnb.sock")
            if len(os.fsencode(path)) > LONGEST_PATH:
                raise self._fault(
                    ("socket",),
                    f"socket: must have a path of at most {LONGEST_PATH} bytes; got {str(path)!r}; shorten it",
                )
            return SocketAddress(path, self._group(entries["group"]) if "group" in entries else None)
        for key in ("socket", "group"):
            if key in entries:
                raise self._fault((key,), f"{key}: is only for a Unix socket; got host as well; remove one of them")
        port = read_port(self._file, (), entries, entries["host"], DEFAULT_PORT)
        return replace(port, prefix=read_prefix(self._file))

    def _group(self, name: Any) -> int:
        with suppress(KeyError, TypeError, ValueError):
            return grp.getgrnam(name).gr_gid
        raise self._fault(
            ("group",),
            f"group: must be the name of a group of users of this machine; got {name!r}; correct it, or make the group "
            "with groupadd",
        )

    # --- tables -------------------------------------------------------------------------------------------------

    def _tables(self, entries: dict[str, Any]) -> dict[str, TableSettings]:
        tables: dict[str, TableSettings] = {}
        declared: dict[Path, str] = {}
        for name, entry in entries.items():
            tables[name] = table = self._table(name, entry)
            if table.declaration is not None:
                first = declared.setdefault(table.declaration.resolve(), name)
                if first != name:
                    raise self._fault(
                        ("tables", name, "declaration"),
                        f"tables.{name}.declaration: must be a file of this table only, since it names the ledger; got "
                        f"that of tables.{first}; remove one of the tables, or give it a declaration of its own",
                    )
        return tables

    def _table(self, name: str, entry: Any) -> TableSettings:
        at = ("tables", name)
        try:
            checked_name(name)
        except DpnbError as error:
            message = str(error)
        else:
            message = ""
        if message:
            raise self._fault(at, f"tables: {message}; rename the table")
        if not isinstance(entry, dict):
            raise self._fault(at, f"tables.{name}: must be a table with declaration and data; got {entry!r}")
        self._file.refuse_keys(entry, TABLE_KEYS, at)
        place = self._file.locate(*at)
        division = read_division(self._file, entry, at)
        if "session" in entry:
            for key in ("declaration", "data"):
                if key in entry:
                    raise self._fault(
                        (*at, key), f"tables.{name}.{key}: cannot be given with session, which builds the whole session"
                    )
            return TableSettings(name, place, builder=self._builder((*at, "session")), division=division)
        for key in ("declaration", "data"):
            if key not in entry:
                raise self._fault(at, f"{key!r} is missing in tables.{name}; add it, or session")
        declaration, data = self._existing((*at, "declaration")), self._data((*at, "data"))
        return TableSettings(name, place, declaration, data, division=division)

    def _data(self, at: KeyPath) -> tuple[tuple[str, str], ...]:
        entry = self._value(at)
        if isinstance(entry, dict) and entry:
            return tuple((name, str(self._table_file((*at, name)))) for name in entry)
        return (("", str(self._table_file(at))),)

    def _table_file(self, at: KeyPath) -> Path:
        path = self._existing(at)
        if not format_of(path):
            raise self._fault(
                at, f"{'.'.join(at)}: must be a {FORMATS}; got {self._value(at)!r}; convert the table to one"
            )
        return path

    def _builder(self, at: KeyPath) -> tuple[Path, str]:
        value = self._value(at)
        file, colon, function = value.rpartition(":") if isinstance(value, str) else ("", "", "")
        if not file.endswith(".py") or not colon or not function.isidentifier():
            raise self._fault(
                at,
                f"{'.'.join(at)}: must be a Python file and a function in it that returns a session; got {value!r}; "
                "for example 'visits.py:open_session'",
            )
        return self._existing_path(at, file), function

    # --- paths --------------------------------------------------------------------------------------------------

    def _value(self, at: KeyPath) -> Any:
        value: Any = self._content
        for key in at:
            value = value[key]
        return value

    def _file_of(self, at: KeyPath, default: str = "") -> Path:
        value = self._value(at) if at[-1] in self._content else default
        if not isinstance(value, str) or not value:
            raise self._fault(at, f"{'.'.join(at)}: must be the path of a file; got {value!r}; write it in quotes")
        return self._path.parent / value

    def _existing(self, at: KeyPath) -> Path:
        value = self._value(at)
        if not isinstance(value, str) or not value:
            raise self._fault(at, f"{'.'.join(at)}: must be the path of a file; got {value!r}; write it in quotes")
        return self._existing_path(at, value)

    def _existing_path(self, at: KeyPath, value: str) -> Path:
        path = self._path.parent / value
        if not path.exists():
            raise self._fault(
                at, f"{'.'.join(at)}: must be an existing file; got {value!r}, which is {str(path)!r}; correct the path"
            )
        return path

    def _fault(self, at: KeyPath, message: str) -> DpnbError:
        return self._file.fault(InvalidValueError, at, message)
