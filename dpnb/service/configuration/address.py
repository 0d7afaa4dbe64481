"""The socket on which a service listens.

A Unix socket is the default: the permissions of its folder say who may connect.  It is made by the service, since
uvicorn would let every user of the machine connect.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dpnb.errors import InvalidValueError
from dpnb.service.configuration.ports import PortAddress, SocketAddress

BACKLOG = 128


@dataclass(frozen=True)
class Listening:
    """An open socket and the address under which analysts find it."""

    socket: socket.socket
    url: str
    inode: int | None = None

    def remove(self, address: SocketAddress | PortAddress) -> None:
        """Remove the file of a Unix socket, unless another service has replaced it."""
        self.socket.close()
        if isinstance(address, SocketAddress):
            with suppress(OSError):
                if os.stat(address.socket).st_ino == self.inode:
                    address.socket.unlink()


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
        return Listening(opened, address.url, os.stat(path).st_ino)
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
    return Listening(opened, replace(address, port=opened.getsockname()[1]).url)
