"""A port on which a service listens: read from the settings and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpnb.errors import DpnbError, InvalidValueError
from dpnb.service.access.hub_settings import is_loopback
from dpnb.session.toml_file import KeyPath, TomlFile

TLS_KEYS = dict.fromkeys(("certificate", "key"), True)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
LARGEST_PORT = 65535
HOST_NAME = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)


@dataclass(frozen=True)
class Certificate:
    """The files of a TLS certificate and its key."""

    certificate: Path
    key: Path
    place: str = field(default="tls", compare=False)  # file and line in the settings, for errors


@dataclass(frozen=True)
class PortAddress:
    """A port: with TLS, or on the loopback without."""

    host: str  # that the service listens on
    port: int  # 0 for a free one
    names: tuple[str, ...] = ()  # by which analysts address the service; requests to other names are refused
    tls: Certificate | None = None  # None for plain HTTP, on the loopback only
    prefix: str = ""  # path below which all routes are, for a proxy that forwards requests under it

    @property
    def url(self) -> str:
        """What an analyst passes to `dpnb.connect`."""
        name = self.names[0] if self.names else self.host
        shown = f"[{name}]" if ":" in name else name
        return f"{'http' if self.tls is None else 'https'}://{shown}:{self.port}{self.prefix}"

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """The names that requests may be addressed to, so that a web page cannot reach the port under its own name."""
        return (*self.names, *(LOOPBACK_NAMES if is_loopback(self.host) else (self.host,)))


def read_port(file: TomlFile, at: KeyPath, entry: dict[str, Any], host: Any, port: int) -> PortAddress:
    """Read the keys ``host``, ``port``, ``names`` and ``tls`` of the table `entry`, whose key in the file is `at`.

    `host` is the one that the table states, or the default; `port` is the default only.
    """
    return _AddressReader(file, at).address(entry, host, port)


class _AddressReader:
    def __init__(self, file: TomlFile, at: KeyPath) -> None:
        self._file, self._at = file, at

    def address(self, entry: dict[str, Any], host: Any, default_port: int) -> PortAddress:
        if not isinstance(host, str) or not host:
            raise self._fault("host", f"must be a name or an address; got {host!r}; for example '127.0.0.1'")
        port = entry.get("port", default_port)
        if type(port) is not int or not 0 <= port <= LARGEST_PORT:
            raise self._fault(
                "port", f"must be a whole number up to {LARGEST_PORT}; got {port!r}; for example {default_port}"
            )
        names = entry.get("names", [])
        if not isinstance(names, list) or not all(
            isinstance(name, str) and HOST_NAME.fullmatch(name) for name in names
        ):
            raise self._fault(
                "names", f"must be a list of host names, without a port; got {names!r}; for example ['dp.local']"
            )
        tls = self._tls(entry["tls"]) if "tls" in entry else None
        if tls is None and not is_loopback(host):
            table = ".".join((*self._at, "tls"))
            elsewhere = " or on a Unix socket" if not self._at else ""
            raise self._fault(
                "host",
                f"without TLS must be an address of this machine alone; got {host!r}; add a table [{table}] with "
                f"certificate and key, or listen on '127.0.0.1'{elsewhere}",
            )
        return PortAddress(host, port, tuple(names), tls)

    def _tls(self, entry: Any) -> Certificate:
        if not isinstance(entry, dict):
            raise self._fault("tls", f"must be a table with certificate and key; got {entry!r}")
        self._file.refuse_keys(entry, TLS_KEYS, (*self._at, "tls"))
        certificate, key = (self._existing(entry[name], name) for name in TLS_KEYS)
        return Certificate(certificate, key, self._file.locate(*self._at, "tls"))

    def _existing(self, value: Any, name: str) -> Path:
        keys = (*self._at, "tls", name)
        what = ".".join(keys)
        fault = "must be the path of a file; got {!r}; write it in quotes"
        if isinstance(value, str) and value:
            path = Path(self._file.path).absolute().parent / value
            if path.exists():
                return path
            fault = f"must be an existing file; got {{!r}}, which is {str(path)!r}; correct the path"
        raise self._file.fault(InvalidValueError, keys, f"{what}: {fault.format(value)}")

    def _fault(self, key: str, message: str) -> DpnbError:
        keys = (*self._at, key)
        return self._file.fault(InvalidValueError, keys, f"{'.'.join(keys)}: {message}")
