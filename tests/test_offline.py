"""A test that uses the network fails, also if what it calls hides the error."""

from __future__ import annotations

import contextlib
import re
import socket
import urllib.request
from collections.abc import Callable, Iterator

import pytest

import offline

# Reserved for documentation by RFC 5737, RFC 3849 and RFC 2606: nobody answers there.
FAR, FAR_6, NAME = "192.0.2.1", "2001:db8::1", "example.invalid"


def send(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"", (host, 9))


@pytest.fixture
def attempts() -> Iterator[list[str]]:
    """What was tried and would fail the test, forgotten after it."""
    yield offline.ATTEMPTS
    offline.ATTEMPTS.clear()


@pytest.mark.parametrize(
    ("attempt", "host"),
    [
        (lambda host: socket.create_connection((host, 9)), FAR),
        (lambda host: socket.create_connection((host, 9)), FAR_6),
        (lambda host: socket.create_connection((host, 9)), NAME),
        (lambda host: socket.gethostbyname(host), NAME),
        (lambda host: urllib.request.urlopen(f"http://{host}/"), NAME),
        (send, FAR),
    ],
)
def test_network_is_refused_and_remembered(attempt: Callable[[str], object], host: str, attempts: list[str]) -> None:
    with pytest.raises(OSError, match="tests do not use the network"):
        attempt(host)
    assert len(attempts) == 1
    assert host in attempts[0]


def test_a_test_that_hides_the_error_fails_all_the_same(request: pytest.FixtureRequest, attempts: list[str]) -> None:
    with contextlib.suppress(OSError):
        socket.create_connection((FAR, 9))
    teardown = offline.pytest_runtest_teardown(request.node)
    next(teardown)
    with pytest.raises(pytest.fail.Exception, match=f"tried to use the network: .*{re.escape(FAR)}"):
        next(teardown)
    assert attempts == []


def test_this_machine_is_not_the_network(attempts: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("localhost", port)).close()
    left, right = socket.socketpair()
    left.close()
    right.close()
    assert attempts == []
