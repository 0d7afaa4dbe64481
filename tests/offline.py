"""No test needs a network: a pytest plugin that refuses whatever leaves this machine, and fails the test that tried.

It sees the processes of pytest alone, through Python's audit events.  What other processes do, such as kernels and
clusters, is shown by running the tests where there is no network: see `tests/README.md`.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

ATTEMPTS: list[str] = []
"""What was tried since the last test; a library may swallow the error."""

CONNECTING = ("socket.connect", "socket.sendto", "socket.sendmsg")
WATCHED = {*CONNECTING, "socket.getaddrinfo", "socket.gethostbyname"}
NAMES = {"", "localhost", "None", socket.gethostname()}


def is_here(host: object) -> bool:
    """Whether a host is this machine."""
    name = host.decode() if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in NAMES
    return address.is_loopback or address.is_unspecified


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: only hosts of this machine are looked up and connected to."""
    if event not in WATCHED:  # millions are of other kinds, such as each call of id()
        return
    address = arguments
    if event in CONNECTING:
        connection, address = arguments
        # To connect a socket for datagrams sends nothing: Dask learns its own address so.
        silent = event == "socket.connect" and connection.type == socket.SOCK_DGRAM
        if silent or not isinstance(address, tuple):  # a path, or the address of an earlier connect
            return
    if not is_here(address[0]):
        ATTEMPTS.append(f"{event} {address[:2]}")
        raise OSError(f"tests do not use the network: {ATTEMPTS[-1]}")


def pytest_configure() -> None:
    sys.addaudithook(refuse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """After a test and its fixtures, fail it if it tried."""
    yield
    if ATTEMPTS:
        tried = "; ".join(ATTEMPTS)
        ATTEMPTS.clear()
        pytest.fail(f"the test, or a fixture of it, tried to use the network: {tried}")
