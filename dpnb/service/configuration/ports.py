"""The socket or the port on which a service listens: as the settings name it, and opened.

A Unix socket is the default: the permissions of its folder say who may connect.  It is made by the service, since
uvicorn would let every user of the machine connect.
"""

from __future__ import annotations

import errno
import grp
import ipaddress
import os
import re
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from dpnb.errors import InvalidValueError
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


# --- open sockets -----------------------------------------------------------------------------------------------------


BACKLOG = 128


@dataclass(frozen=True)
class Listening:
    """An open socket and the address under which analysts find it."""

    socket: socket.socket
    address: SocketAddress | PortAddress
    inode: int | None = None

    def remove(self) -> None:
        """Close the socket, and remove the file of a Unix socket, unless another service has replaced it."""
        self.socket.close()
        if isinstance(self.address, SocketAddress):
            with suppress(OSError):
                if os.stat(self.address.socket).st_ino == self.inode:
                    self.address.socket.unlink()


def listen(address: SocketAddress | PortAddress) -> Listening:
    """Open the socket of an address; `InvalidValueError` if it cannot be used, or another process listens there."""
    return _listen_on_socket(address) if isinstance(address, SocketAddress) else _listen_on_port(address)


def _listen_on_socket(address: SocketAddress) -> Listening:
    path = address.socket
    group = address.group
    _make_folder(path.parent, group)
    _remove_stale(path)
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mask = os.umask(0o177)  # nobody else may connect before the group is set
        try:
            opened.bind(str(path))
        finally:
            os.umask(mask)
        if group is not None:
            os.chown(path, -1, group)
        os.chmod(path, 0o660)
        opened.listen(BACKLOG)
        return Listening(opened, address, os.stat(path).st_ino)
    except OSError as error:
        opened.close()
        raise InvalidValueError(
            f"socket: {str(path)!r} must be a path where a socket can be made; {error.strerror}"
        ) from None


def _make_folder(folder: Path, group: int | None) -> None:
    """Make the socket's folder, or check that only the curator can change it."""
    try:
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
            if group is not None:
                os.chown(folder, -1, group)
                folder.chmod(0o750)  # the group's members may reach the socket
        status = folder.stat()
    except OSError as error:
        raise InvalidValueError(
            f"socket: {str(folder)!r} must be a folder of the account that runs the service, or one that this account "
            f"can make; {error.strerror}; make it as root with this account as its owner, or use another path"
        ) from None
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidValueError(
            f"socket: {str(folder)!r} must belong to the account that runs the service, and only this account may "
            "change it, so that nobody else can put a socket there; other accounts can; correct its owner and mode, or "
            "use another path, whose folder the service makes"
        )


def _remove_stale(path: Path) -> None:
    """Remove the socket of a service that was killed; refuse to remove one that is in use, or anything else."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(mode):
        raise InvalidValueError(f"socket: {str(path)!r} must be a socket or absent; it is something else; remove it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        answer = probe.connect_ex(str(path))
    if answer == errno.ECONNREFUSED:
        path.unlink()
    elif answer != errno.ENOENT:
        raise InvalidValueError(f"socket: another process listens on {str(path)!r}; stop it, or use another path")


def _listen_on_port(address: PortAddress) -> Listening:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, place = found[0]
        both = family == socket.AF_INET6  # IPv4 too, for the address of all interfaces
        opened = socket.create_server(place, family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise InvalidValueError(
            f"host: {address.host} with port {address.port} must be free to listen on; {error.strerror}"
        ) from None
    return Listening(opened, replace(address, port=opened.getsockname()[1]))
