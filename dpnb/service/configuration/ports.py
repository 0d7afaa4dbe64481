"""The socket or the port on which a service listens, as the settings name it."""

from __future__ import annotations

import grp
import ipaddress
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from dpnb.service.configuration.reading import (
    SettingError,
    existing_file,
    fault,
    file_path,
    keys_of,
    matching,
    read_struct,
    whole,
)
from dpnb.session.toml_file import KeyPath, TomlFile

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
LONGEST_PATH = 100
"""Bytes of a Unix socket's path; the operating system allows little more."""

HOST_NAME = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)
PREFIX = re.compile(r"(?=.{,200}$)(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+", re.ASCII)
TEXT = re.compile(r".+", re.DOTALL)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --- values -----------------------------------------------------------------------------------------------------------


def _socket_path(value: Any, folder: Path) -> Path:
    found = file_path(value, folder)
    if len(os.fsencode(found)) <= LONGEST_PATH:
        return found
    raise SettingError(f"must have a path of at most {LONGEST_PATH} bytes", "shorten it", got=repr(str(found)))


def _group(value: Any, folder: Path) -> int:
    """The number of a group of users."""
    with suppress(KeyError, TypeError, ValueError):
        return grp.getgrnam(value).gr_gid
    raise SettingError(
        "must be the name of a group of users of this machine", "correct it, or make the group with groupadd"
    )


def _host_names(value: Any, folder: Path) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) and HOST_NAME.fullmatch(name) for name in value):
        return tuple(value)
    raise SettingError("must be a list of host names, without a port", "for example ['dp.local']")


# --- addresses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SocketAddress:
    """A Unix socket, for analysts on the same machine."""

    socket: Annotated[Path, _socket_path]  # in a folder of the curator's
    group: Annotated[int | None, _group] = None  # whose members may connect; else only the curator's own user

    @property
    def url(self) -> str:
        """What an analyst passes to `dpnb.connect`."""
        return f"unix://{self.socket}"


@dataclass(frozen=True)
class Certificate:
    """The files of a TLS certificate and its key."""

    certificate: Annotated[Path, existing_file]
    key: Annotated[Path, existing_file]
    place: str = field(default="tls", compare=False)  # file and line in the settings, for errors


@dataclass(frozen=True)
class PortAddress:
    """A port: with TLS, or on the loopback without."""

    host: Annotated[str, matching(TEXT, "a name or an address", "127.0.0.1")]  # that the service listens on
    port: Annotated[int, whole(0, 65535, 8443)]  # 0 for a free one
    names: Annotated[tuple[str, ...], _host_names] = ()  # by which it is addressed; requests to others are refused
    tls: Annotated[Certificate | None, Certificate] = None  # None for plain HTTP, on the loopback only
    prefix: Annotated[
        str,
        matching(
            PREFIX,
            "the path under which a proxy forwards requests, with a slash at the beginning and none at the end",
            "/services/dpnb",
        ),
    ] = ""  # path below which all routes are

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


def read_address(file: TomlFile) -> SocketAddress | PortAddress:
    """Read where the service listens: on a port if the file has a host, and else on a socket."""
    is_port = "host" in file.content
    for key in keys_of(SocketAddress if is_port else PortAddress):
        if key in file.content:
            rule = "is only for a Unix socket, not for a host" if is_port else "is used only with host"
            remedy = "remove one of them" if is_port else f"add host, or remove {key}"
            raise fault(file, (key,), file.content[key], rule, remedy)
    kind = PortAddress if is_port else SocketAddress
    entry = {key: value for key, value in file.content.items() if key in keys_of(kind)}
    if is_port:
        return read_port(file, (), {"port": 8443, **entry})
    return read_struct(file, SocketAddress, {"socket": "run/dpnb.sock", **entry}, ())


def read_cockpit(file: TomlFile, own: SocketAddress | PortAddress) -> PortAddress:
    """Read where the curator's page is served, which has an origin of its own."""
    at, entry = ("cockpit",), file.content["cockpit"]
    if isinstance(entry, dict):
        entry = {"host": "127.0.0.1", "port": 8444, **entry}
    address = read_port(file, at, entry, prefix="")
    if isinstance(own, PortAddress) and address.port and own.port == address.port:
        rule = "must not be the service's own port, so that the page has an origin of its own"
        raise fault(file, (*at, "port"), address.port, rule, "change one of them")
    return address


def read_port(file: TomlFile, at: KeyPath, entry: object, **given: str) -> PortAddress:
    """Read the keys of a port in a table of the file, whose key is `at`."""
    address = read_struct(file, PortAddress, entry, at, **given)
    if address.tls is None and not is_loopback(address.host):
        table, elsewhere = ".".join((*at, "tls")), "" if at else " or on a Unix socket"
        rule = "without TLS must be an address of this machine alone"
        remedy = f"add a table [{table}] with certificate and key, or listen on '127.0.0.1'{elsewhere}"
        raise fault(file, (*at, "host"), address.host, rule, remedy)
    return address
