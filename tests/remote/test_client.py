"""A remote session loses its connection, is interrupted, and follows what others charge."""

from __future__ import annotations

import _thread
import copy
import gc
import pickle
import threading
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import dpnb
from dpnb._core import open_sessions
from dpnb._core.execution.executor import RemoteExecutor
from dpnb.errors import (
    AccessDenied,
    BudgetExceeded,
    DpnbError,
    InvalidValueError,
    LedgerError,
    ServiceError,
    ServiceUnavailable,
)
from dpnb.remote import RemoteSession, channel
from dpnb.remote.tokens import Origin, Token, origin_of
from remote.people import connected, people
from remote.small_service import TOKEN, SmallService
from waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RemoteSession, SmallService]]:
    with connected(people(), tmp_path) as both:
        yield both


def spent(service: SmallService) -> int:
    return service.sessions["people"].ledger.count


@pytest.mark.parametrize("fault", ["before", "after", "503"])
def test_a_lost_connection_charges_once(fault: str, pair: tuple[RemoteSession, SmallService]) -> None:
    remote, service = pair
    service.faults += [fault, fault]
    answer = remote.frame["age"].mean().release(share=0.1)
    assert len(service.executed) == spent(service) == len(remote.log) == 1
    assert remote.frame["age"].mean().release(share=0.1).estimate == answer.estimate
    assert spent(service) == 1


def test_after_a_long_loss_repeating_takes_up_the_charge(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, service = pair
    remote._channel._retry_seconds = 0
    service.faults += ["after"]
    query = remote.frame["age"].mean()
    with pytest.raises(ServiceUnavailable, match="may have been charged"):
        query.release(share=0.1)
    assert query.release(share=0.1).description == "mean of age"
    assert spent(service) == len(service.executed) == 1


def test_the_control_executes_a_comparison_twice(
    pair: tuple[RemoteSession, SmallService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its row is in the copy, only the remembered request keeps it from being executed twice."""
    remote, service = pair
    monkeypatch.setattr(RemoteExecutor, "find", lambda self, request: [])  # as if it was not yet
    remote._channel._retry_seconds = 0
    scan = remote.above_threshold(10_000, epsilon=0.2, name="alarm")
    for forgets, times in ((False, 1), (True, 2)):
        service.faults[:] = ["after"]
        before = service.executed.count("CompareWithThreshold")
        with pytest.raises(ServiceUnavailable):
            scan.ask(remote.frame.count())
        if forgets:
            remote._core.remote._unanswered.clear()
        scan.ask(remote.frame.count())
        assert service.executed.count("CompareWithThreshold") == before + times


def test_an_interrupt_leaves_a_session_that_can_repeat(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, service = pair
    query = remote.frame["age"].mean()
    service.may_continue.clear()
    is_sent = threading.Thread(
        target=lambda: (
            wait_until(lambda: any(one["path"].endswith("requests") for one in service.seen), "the request"),
            _thread.interrupt_main(),
        )
    )
    is_sent.start()
    with pytest.raises(KeyboardInterrupt):
        query.release(share=0.1)
    is_sent.join()
    service.may_continue.set()
    answer = query.release(share=0.1)
    assert answer.description == "mean of age"
    assert spent(service) == 1


class WatchedClient(httpx.Client):
    """A client that notes whether it is used or closed by one thread while another one uses it."""

    def __init__(self, origin: Origin, auth: Any, disturbed: list[str], is_closed: list[bool]) -> None:
        transport = httpx.HTTPTransport(uds=origin.socket, verify=False)
        super().__init__(base_url=origin.url, auth=auth, timeout=120, transport=transport)
        self._users, self._disturbed, self._closed = 0, disturbed, is_closed

    @contextmanager
    def stream(self, *args: Any, **kwargs: Any) -> Iterator[httpx.Response]:
        if self._users:
            self._disturbed.append("used by two")
        self._users += 1
        try:
            with super().stream(*args, **kwargs) as response:
                yield response
        finally:
            self._users -= 1

    def close(self) -> None:
        if self._users:
            self._disturbed.append("closed in use")
        super().close()
        self._closed.append(True)


def test_no_connection_is_closed_or_used_by_another_thread(pair: tuple[RemoteSession, SmallService]) -> None:
    """Its number would be free for another socket, from which the reading thread would take bytes."""
    (remote, service), disturbed, is_closed = pair, list[str](), list[bool]()
    made: list[WatchedClient] = []

    class Watched(channel.Channel):
        def _new_client(self, _: float) -> httpx.Client:
            made.append(WatchedClient(self.origin, self._with_token, disturbed, is_closed))
            return made[-1]

    used = Watched(origin_of(remote.address), Token(TOKEN, "token="))

    def send() -> None:
        with pytest.raises(DpnbError):  # it is no call
            used.post("tables/people/requests", b"{}")

    service.may_continue.clear()
    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum(client._users for client in made) == 2, "both requests")
    used.close()
    assert not is_closed
    service.may_continue.set()
    for thread in threads:
        thread.join()
    assert not disturbed
    assert len(is_closed) == len(made) == 2


def test_refusals_have_their_type_and_text(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, service = pair
    for session in (remote, service.sessions["people"]):
        with pytest.raises(BudgetExceeded, match="more than 1000% of the budget"):
            session.frame.count().release(mu=20)
    assert spent(service) == 0


def test_it_follows_what_another_kernel_charges(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, service = pair
    changes: list[int] = []
    open_sessions.subscribe(listener := lambda: changes.append(remote._core.account.ledger.count))
    try:
        answer = service.sessions["people"].frame["age"].mean().release(share=0.1)
        wait_until(lambda: 1 in changes, "the charge to be shown")
        assert len(remote.log) == 1
        mean = remote.frame["age"].mean()
        wait_until(lambda: mean.best is not None, "the answer, which may be told after its charge")
        assert mean.best is not None
        assert mean.best.estimate == answer.estimate
    finally:
        open_sessions.unsubscribe(listener)


def test_many_rows_are_fetched_in_pages(tmp_path: Path) -> None:
    session = people(budget=dpnb.Budget.gdp(10))
    for index in range(120):
        session.frame.count().release(mu=0.01 + index / 10_000)
    with connected(session, tmp_path) as (remote, _):
        assert len(remote.log) == 120
        assert remote.headroom == session.headroom


def test_it_connects_again_after_a_restart(tmp_path: Path) -> None:
    session = people()
    service = SmallService({"people": session})
    with service.served(tmp_path / "s") as address:
        remote = dpnb.connect(address, token=TOKEN)
    connection = remote._core.connection
    assert connection is not None
    wait_until(lambda: not connection.is_current, "the loss to be noticed")
    assert "out of date since" in connection.text
    assert "reconnecting" in connection.text
    assert "Out of date since" in repr(remote)
    session.frame.count().release(share=0.1)
    with service.served(tmp_path / "s"):
        connection.refresh()
        wait_until(lambda: connection.is_current, "the session to be up to date")
        assert len(remote.log) == 1
        remote.close()
    assert not connection.is_current


def test_an_older_ledger_is_noticed(tmp_path: Path) -> None:
    service = SmallService({"people": people()})
    with service.served(tmp_path / "s") as address:
        remote = dpnb.connect(address, "people", token=TOKEN)
        remote.frame.count().release(share=0.1)
    restored = SmallService({"people": people()})
    with restored.served(tmp_path / "s"):
        connection = remote._core.connection
        assert connection is not None
        connection.refresh()
        wait_until(lambda: "connect again" in connection.text, "the ledger to be compared", lambda: connection.text)
        with pytest.raises(LedgerError, match="have restored an older ledger"):
            remote.frame["age"].mean().release(share=0.1)
        assert spent(restored) == 0


def test_another_version_of_the_table_is_noticed(tmp_path: Path) -> None:
    service = SmallService({"people": people()})
    with service.served(tmp_path / "s") as address:
        remote = dpnb.connect(address, "people", token=TOKEN)
    service.versions["people"] = "2"
    with service.served(tmp_path / "s"):
        connection = remote._core.connection
        assert connection is not None
        connection.refresh()
        wait_until(lambda: "another table" in connection.text, "the table to be compared", lambda: connection.text)


def test_kept_token_that_is_refused_is_replaced_at_a_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DPNB_TOKEN", raising=False)
    service = SmallService({"people": people()})
    with service.served(tmp_path / "s") as address:
        kept = Token("revoked-token", "test").keep(origin_of(address))
        monkeypatch.setattr("sys.stdin", None)
        with pytest.raises(AccessDenied, match=r"refused the access token.*is from: file "):
            dpnb.connect(address, "people")  # nobody can be prompted
        prompts: list[str] = []
        monkeypatch.setattr("getpass.getpass", lambda prompt: prompts.append(prompt) or TOKEN)  # as in a kernel
        monkeypatch.setattr("builtins.input", lambda prompt: "y")
        assert dpnb.connect(address, "people").name == "people"
        assert f"refused the token from file {kept}. " in prompts[0]
        assert kept.read_text("ascii").strip() == TOKEN
        with pytest.raises(AccessDenied, match="is from: token="):
            dpnb.connect(address, "people", token="wrong-token")


def test_tokens_and_addresses(tmp_path: Path) -> None:
    service = SmallService({"people": people(), "others": people(name="others")})
    with service.served(tmp_path / "s") as address:
        with pytest.raises(AccessDenied, match="refused the access token"):
            dpnb.connect(address, "people", token="wrong-token")
        with pytest.raises(InvalidValueError, match="'people', 'others'"):
            dpnb.connect(address, token=TOKEN)
        with pytest.raises(InvalidValueError, match="got 'nobody'; the tables are 'people', 'others'"):
            dpnb.connect(address, "nobody", token=TOKEN)
        with pytest.raises(InvalidValueError, match="name of a table"):
            dpnb.connect(address, "../people", token=TOKEN)
        remote = dpnb.connect(address, "people", token=TOKEN)
        with pytest.raises(ServiceError, match="redirection, which is not followed"):
            remote._channel.get("moved", str)
        with pytest.raises(ServiceError, match="another version of the messages"):
            remote._channel.get("unknown", str)
        with pytest.raises(ServiceError, match="cannot read"):
            remote._channel.get("tables", int)
        remote.close()
    with pytest.raises(ServiceUnavailable, match="nothing was charged"):
        dpnb.connect(address, "people", token=TOKEN)


def test_the_token_is_nowhere_to_be_seen(
    pair: tuple[RemoteSession, SmallService], monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, service = pair
    remote._channel._retry_seconds = 0
    shown = [repr(remote), str(remote), str(remote._repr_html_()), repr(remote._channel), repr(vars(remote._channel))]
    service.faults += ["500", "before"]
    for error in (ServiceError, ServiceUnavailable):
        with pytest.raises(error) as caught:
            remote.frame.count().release(share=0.1)
        lines = traceback.TracebackException.from_exception(caught.value, capture_locals=True).format()
        shown.append("".join(lines))
    assert not [text for text in shown if TOKEN in text]
    assert TOKEN in str(service.seen)


def test_a_proxy_of_the_environment_does_not_see_local_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    made = channel.Channel(origin_of("http://localhost:1"), Token("abc", "token="))._new_client(1.0)
    with made:
        assert not [one for one in made._mounts.values() if one is not None]
        assert not made.follow_redirects
    with httpx.Client() as control:
        assert [one for one in control._mounts.values() if one is not None]


def test_it_is_neither_copied_nor_pickled(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, _ = pair
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            act(remote)


def test_sessions_on_one_table_have_one_id(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, _ = pair
    other = dpnb.connect(remote.address, token=TOKEN)
    assert other.id == remote.id
    assert remote.delegate(share=0.1, name="colleague").id != remote.id
    other.close()


def test_the_thread_ends_with_the_session(pair: tuple[RemoteSession, SmallService]) -> None:
    remote, _ = pair
    other = dpnb.connect(remote.address, token=TOKEN)
    connection: Any = other._core.connection
    wait_until(lambda: connection._stream is not None, "the stream")
    gone = weakref.ref(other)
    del other
    gc.collect()
    assert gone() is None
    wait_until(lambda: connection._stream is None, "the thread to end")


def test_without_threads_each_reply_brings_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = people()
    service = SmallService({"people": session})
    with service.served(tmp_path / "s") as address:
        start = _thread.start_new_thread

        def refused(function: Any, *arguments: Any) -> int:
            if "dpnb" in getattr(function, "__module__", ""):
                raise RuntimeError("can't start new thread")
            return start(function, *arguments)

        monkeypatch.setattr(_thread, "start_new_thread", refused)
        remote = dpnb.connect(address, token=TOKEN)
        session.frame["cost"].mean().release(share=0.1)
        connection = remote._core.connection
        assert connection is not None
        assert "not followed" in connection.text
        remote.frame["age"].mean().release(share=0.1)
        assert len(remote.log) == 2
        session.frame["age"].max().release(share=0.1)
        connection.refresh()
        assert len(remote.log) == 3
        remote.close()
