"""Connections that send nothing, or not what HTTP is, against a service as a process."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import h11
import httpx
import pytest

from dpnb.service.access.tokens import new_token
from dpnb.service.network import http
from dpnb.service.network.connections import most_connections
from dpnb.service.network.http import fault_of
from dpnb.service.quotas import FAILURES_PER_MINUTE
from forked import Forked
from service.hasty import serve_hastily
from service.test_process import DECLARATION
from waiting import LIMIT, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.waits]

SETTINGS = """\
log = "service.log"
socket = "s"
time_grid = false
[cockpit]
port = 0
[limits]
{0}
[tables.people]
declaration = "people.toml"
data = "people.csv"
"""
HEALTH = b"GET /v3/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
ROOM_FOR_ALL = "connections = 2000"


class Service:
    """A service with a cockpit as a process."""

    def __init__(self, folder: Path, limits: str = "") -> None:
        self.folder, self.page, self.url = folder, "", ""
        (folder / "people.csv").write_text("age\n3\n", "utf-8")
        (folder / "people.toml").write_text(DECLARATION.format("people"), "utf-8")
        (folder / "curator.toml").write_text(SETTINGS.format(limits), "utf-8")
        self.token = new_token(folder / "tokens.json", "ana")
        self.monitor = new_token(folder / "tokens.json", "prometheus", role="monitor")

    @contextmanager
    def served(self, *limits: str, files: int = 1024) -> Iterator[Forked]:
        with closing(Forked(serve_hastily, str(self.folder / "curator.toml"), *limits, files=files)) as process:
            self.page = process.stdout.readline().partition("page is at ")[2].partition(";")[0]
            self.url = process.stdout.readline().partition("serving at ")[2].partition(";")[0].strip()
            assert self.url
            yield process

    def connection(self, port: str = "service") -> socket.socket:
        if port == "service":
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            opened.settimeout(LIMIT)
            wait_until(lambda: opened.connect_ex(str(self.folder / "s")) == 0, "room in the queue")
            return opened
        parts = urlsplit(self.page)
        return socket.create_connection((parts.hostname or "", parts.port or 0), LIMIT)

    def client(self) -> httpx.Client:
        return httpx.Client(
            transport=httpx.HTTPTransport(
                uds=str(self.folder / "s"), retries=5, verify=False
            ),  # where the queue is full
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=LIMIT,
        )

    def health(self) -> int:
        with self.client() as client:
            return client.get("/v3/health").status_code

    def answers(self) -> bool:
        with suppress(httpx.TransportError):
            return self.health() == 200
        return False

    def metric(self, name: str) -> float:
        headers = {"Authorization": f"Bearer {self.monitor}"}
        with httpx.Client(
            transport=httpx.HTTPTransport(retries=5, verify=False), headers=headers, timeout=LIMIT
        ) as client:
            lines = client.get(f"{self.page.rstrip('/')}/metrics").raise_for_status().text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def log(self) -> list[str]:
        return (self.folder / "service.log").read_text("utf-8").splitlines()


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("k")  # a short path: it is that of a socket


@pytest.fixture
def many_files() -> Iterator[None]:
    """Let this process open as many files as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def until_closed(opened: socket.socket) -> bytes:
    """What arrives until the other side closes."""
    received = b""
    try:
        while part := opened.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


# --- how many -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", ["", ROOM_FOR_ALL], ids=["of one peer", "of all"])
@pytest.mark.usefixtures("many_files")
def test_silent_connections_stop_neither_sessions_nor_health_nor_the_cockpit(folder: Path, limits: str) -> None:
    service = Service(folder, limits)
    with service.served() as process, ExitStack() as stack:
        client = stack.enter_context(service.client())
        stream = stack.enter_context(client.stream("GET", "/v3/tables/people/events"))
        events = stream.iter_lines()
        assert next(events).startswith("data:")
        for number in range(1500):
            stack.enter_context(closing(service.connection("service" if number % 5 else "cockpit")))
        began = time.monotonic()
        assert [service.health() for _ in range(5)] == [200] * 5
        assert httpx.get(service.page, timeout=LIMIT).status_code == 200
        with service.client() as another:
            assert another.get("/v3/tables/people").status_code == 200
        assert time.monotonic() - began < 20
        assert service.metric('dpnb_closed_connections_total{limit="all",port="cockpit"}') > 0
        assert service.metric("dpnb_connections") <= 1100
        assert stream.is_closed is False
        process.send_signal(signal.SIGTERM)
        list(events)  # the stream was not closed before
        assert process.wait(LIMIT) == 0
    assert len(service.log()) < 20


def test_a_peer_may_not_have_more_connections_than_its_limit(folder: Path) -> None:
    service = Service(folder, "connections = 20")
    with service.served(), ExitStack() as stack:
        silent = [stack.enter_context(closing(service.connection())) for _ in range(40)]
        wait_until(lambda: service.metric('dpnb_connections{port="service"}') == 20, "the others to be closed")
        assert until_closed(silent[0]) == b""
        silent[-1].sendall(HEALTH)
        assert silent[-1].recv(100).startswith(b"HTTP/1.1 200")


def test_the_requests_of_an_analyst_that_are_open_at_once_are_limited(folder: Path) -> None:
    service = Service(folder, "connections = 3")
    with service.served(), ExitStack() as stack:
        clients = [stack.enter_context(service.client()) for _ in range(3)]
        streams = [stack.enter_context(one.stream("GET", "/v3/tables/people/events")) for one in clients[:2]]
        assert clients[2].get("/v3/tables").status_code == 200
        assert [one.status_code for one in streams] == [200, 200]
    service = Service(folder, "connections = 3\nstreams = 10\n")
    (folder / "curator.toml").write_text("behind_proxy = true\n" + (folder / "curator.toml").read_text(), "utf-8")
    with service.served(), ExitStack() as stack:
        clients = [stack.enter_context(service.client()) for _ in range(4)]
        for one in clients[:3]:
            stack.enter_context(one.stream("GET", "/v3/tables/people/events"))
        refused = clients[3].get("/v3/tables")
        assert refused.status_code == 429
        assert "too many are open at once" in refused.text
        service.token = new_token(folder / "tokens.json", "bob")  # whom the proxy also connects
        with service.client() as another:
            assert another.get("/v3/tables").status_code == 200


@pytest.mark.usefixtures("many_files")
def test_a_process_without_free_files_goes_on_when_there_are_some(folder: Path) -> None:
    service = Service(folder, ROOM_FOR_ALL)
    with service.served("RESERVED_FILES=-1000", "HEAD_SECONDS=3", files=100), ExitStack() as stack:
        for _ in range(150):
            stack.enter_context(closing(service.connection()))
        wait_until(service.answers, "time limits to free files")
    assert len(service.log()) < 20


def test_the_service_does_not_start_with_too_few_files(folder: Path) -> None:
    service = Service(folder)
    limited = ["sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", sys.executable, "-m", "dpnb", "serve"]
    ended = subprocess.run([*limited, str(folder / "curator.toml")], capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert "open files: must be at least" in ended.stderr
    assert "LimitNOFILE=" in ended.stderr
    with service.served(files=600):
        assert service.health() == 200
    (line,) = [json.loads(line) for line in service.log() if "few_open_files" in line]
    assert (line["connections"], line["cockpit_connections"]) == (162, 54)


@pytest.mark.usefixtures("many_files")
def test_connections_leave_files_to_everything_else() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert sum(most_connections(True)) < soft


# --- how long -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("port", ["service", "cockpit"])
def test_a_client_that_sends_no_request_is_closed(folder: Path, port: str) -> None:
    service = Service(folder)
    with service.served("HEAD_SECONDS=1"), ExitStack() as stack:
        silent, slow, second = (stack.enter_context(closing(service.connection(port))) for _ in range(3))
        path = b"/v3/health" if port == "service" else b"/"
        second.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
        assert second.recv(100).startswith(b"HTTP/1.1 ")
        deadline = time.monotonic() + LIMIT
        with suppress(OSError):
            while time.monotonic() < deadline:
                slow.sendall(b"G")
                second.sendall(b"G")
                time.sleep(0.1)
        assert time.monotonic() < deadline
        assert until_closed(silent) == b""
        until_closed(second)


def test_a_body_that_nobody_reads_does_not_keep_a_connection(folder: Path) -> None:
    service = Service(folder)
    with service.served("LINGER_SECONDS=1"), closing(service.connection()) as opened:
        opened.sendall(HEALTH[:-2] + b"Content-Length: 1000000\r\n\r\n")
        assert opened.recv(100).startswith(b"HTTP/1.1 200")
        deadline = time.monotonic() + LIMIT
        with suppress(OSError):
            while time.monotonic() < deadline:
                opened.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() < deadline


@contextmanager
def unread(service: Service) -> Iterator[socket.socket]:
    """A client that sends many requests and reads no reply."""
    with closing(service.connection()) as opened:
        opened.settimeout(2)
        with suppress(TimeoutError, OSError):
            while True:
                opened.sendall(HEALTH * 1000)
        yield opened


def test_a_client_that_does_not_read_is_closed(folder: Path) -> None:
    service = Service(folder)
    with service.served("WRITE_SECONDS=1"), unread(service):
        limit = 'dpnb_closed_connections_total{limit="write"'
        wait_until(lambda: service.metric(limit) > 0, "the connection to be closed")


def test_a_client_that_does_not_read_cannot_keep_the_service_from_stopping(folder: Path) -> None:
    service = Service(folder)
    with service.served("WRITE_SECONDS=10000", "STOPPING_SECONDS=1") as process, unread(service):
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0


def test_replies_that_wait_for_unread_ones_do_not_keep_the_service_from_stopping(folder: Path) -> None:
    service = Service(folder)
    column = {"op": "column", "name": "age"}
    long = {"op": "isin", "inner": column, "values": [number + 0.5 for number in range(40_000)]}
    plan = {"aggregation": {"of": "count"}, "where": long, "contribution_bounds": {}}
    call = {"request": "release", "plan": plan, "view": {"view": "plain"}, "target": {"kind": "mu", "amount": "1/10"}}
    rows = f"GET /v3/tables/people/rows HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.token}\r\n\r\n"
    with service.served("WRITE_SECONDS=10000", "STOPPING_SECONDS=1") as process, ExitStack() as stack:
        with service.client() as client:
            reply = client.post("/v3/tables/people/requests", json={"id": "a", "request": call})
            assert reply.json()["reply"] == "done", reply.text[:1000]
            for _ in range(80):
                opened = stack.enter_context(closing(service.connection()))
                opened.sendall(rows.encode())
            wait_until(lambda: service.metric("dpnb_connections") >= 80, "the requests to be received")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
        assert time.monotonic() - began < 10  # two after the other would take 40 s


# --- what -----------------------------------------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
START = b"POST /v3/tables/people/requests HTTP/1.1\r\n" + HOST
INVALID = {
    "length and chunks": START + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": START + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": START + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "the same length twice": START + b"Content-Length: 5\r\ncontent-length: 5\r\n\r\nabcde",
    "lengths in a list": START + b"Content-Length: 5, 5\r\n\r\nabcde",
    "a length with a sign": START + b"Content-Length: +5\r\n\r\nabcde",
    "a hexadecimal length": START + b"Content-Length: 0x5\r\n\r\nabcde",
    "an empty length": START + b"Content-Length: \r\n\r\n",
    "another coding": START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings": START + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks": START + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bare line feed after chunks": START + b"Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\n",
    "chunks in HTTP/1.0": START.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare line feeds": b"GET /v3/health HTTP/1.1\nHost: localhost\n\n",
    "one bare line feed": b"GET /v3/health HTTP/1.1\r\n" + HOST + b"A: b\nC: d\r\n\r\n",
    "a bare end": b"GET /v3/health HTTP/1.1\r\n" + HOST + b"\n",
    "a bare carriage return": b"GET /v3/health HTTP/1.1\r\n" + HOST + b"A: b\rC: d\r\n\r\n",
    "a folded line": b"GET /v3/health HTTP/1.1\r\n" + HOST + b"A: b\r\n c\r\n\r\n",
    "a blank before the colon": b"GET /v3/health HTTP/1.1\r\n" + HOST + b"A : b\r\n\r\n",
    "a blank before the name": b"GET /v3/health HTTP/1.1\r\n " + HOST + b"\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("k"))
    with service.served():
        yield service


@pytest.mark.parametrize("port", ["service", "cockpit"])
@pytest.mark.parametrize("name", INVALID)
def test_a_request_that_can_be_read_in_two_ways_is_refused_and_closed(shared: Service, port: str, name: str) -> None:
    with closing(shared.connection(port)) as opened:
        opened.sendall(INVALID[name] + HEALTH)
        received = until_closed(opened)
    statuses = [line for line in received.splitlines() if line.startswith(b"HTTP/")]
    assert len(statuses) == 1
    assert statuses[0].startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert b"connection: close" in received.lower()


def test_a_fault_is_found_however_the_bytes_arrive(shared: Service) -> None:
    assert fault_of(HEALTH) == ""
    assert all(fault_of(HEALTH[:end]) == "" for end in range(len(HEALTH)))
    with closing(shared.connection()) as opened:
        for byte in HEALTH * 2:  # valid requests, byte by byte
            opened.sendall(bytes([byte]))
        assert opened.recv(100).startswith(b"HTTP/1.1 200")
        for byte in INVALID["one bare line feed"][:-4]:
            opened.sendall(bytes([byte]))
        assert b"HTTP/1.1 400" in until_closed(opened)
    for name, invalid in INVALID.items():
        assert any(fault_of(invalid[:end], end - 1) for end in range(1, len(invalid) + 1)) or name == "no HTTP", name


def test_chunks_of_one_byte_keep_nobody_waiting(shared: Service) -> None:
    """Each of them is an event of the loop that serves everybody, and no limit of bytes bounds their number."""
    chunks = START + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 20_000
    before = shared.metric("process_cpu_seconds_total")
    for _ in range(10):
        with closing(shared.connection()) as opened, suppress(OSError):
            opened.sendall(chunks)
            until_closed(opened)
    assert shared.metric("process_cpu_seconds_total") - before < 1


def test_a_head_is_looked_at_once_however_slowly_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    pattern = http.BARE_LINE_END

    class Pattern:
        @staticmethod
        def search(text: bytes, start: int, end: int) -> object:
            searched.append(end - start)
            return pattern.search(text, start, end)

    monkeypatch.setattr(http, "BARE_LINE_END", Pattern)
    strict = http._StrictConnection(h11.SERVER, http.MOST_HEAD)
    head = HEALTH[:-2] + b"A: " + b"b" * 1000 + b"\r\n\r\n"
    for _ in range(2):
        for byte in head:
            strict.receive_data(bytes([byte]))
            event = strict.next_event()
        assert isinstance(event, h11.Request)
        assert isinstance(strict.next_event(), h11.EndOfMessage)
        strict.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
        strict.send(h11.EndOfMessage())
        strict.start_next_cycle()
    assert sum(searched) < 3 * 2 * len(head)


def test_refused_bytes_do_not_fill_the_log(shared: Service) -> None:
    before = len(shared.log())
    for _ in range(50):
        with closing(shared.connection()) as opened:
            opened.sendall(INVALID["no HTTP"])
            until_closed(opened)
        with closing(shared.connection()) as opened:
            opened.sendall(HEALTH[:-2] + b"Upgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n")
            assert until_closed(opened).startswith(b"HTTP/1.1 200")
    assert len(shared.log()) <= before + 2


def test_failed_logins_are_limited_on_the_analysts_port_and_lock_nobody_out(folder: Path) -> None:
    service = Service(folder)
    with service.served(), service.client() as client:
        wrong = {"Authorization": "Bearer dpnb_wrong"}
        codes = [client.get("/v3/tables", headers=wrong).status_code for _ in range(FAILURES_PER_MINUTE + 5)]
        assert codes == [401] * FAILURES_PER_MINUTE + [429] * 5
        assert client.get("/v3/tables").status_code == 200


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
def test_a_silent_client_is_closed_during_the_handshake_of_tls_and_replies_name_tls_for_later(folder: Path) -> None:
    service = Service(folder)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    tls = 'host = "127.0.0.1"\nport = 0\nnames = ["localhost"]\ntls = { certificate = "cert.pem", key = "key.pem" }\n'
    settings = (folder / "curator.toml").read_text("utf-8").replace('socket = "s"\n', tls)
    (folder / "curator.toml").write_text(settings, "utf-8")
    with service.served("HEAD_SECONDS=1"):
        port = urlsplit(service.url).port or 0
        with closing(socket.create_connection(("127.0.0.1", port), LIMIT)) as silent:
            assert until_closed(silent) == b""
        context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        with httpx.Client(base_url=f"https://localhost:{port}", verify=context, timeout=LIMIT) as client:
            for path in ("/v3/health", "/v3/tables", "/none"):
                assert client.get(path).headers["strict-transport-security"] == "max-age=31536000"
        with (
            closing(socket.create_connection(("127.0.0.1", port), LIMIT)) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as opened,
        ):
            opened.sendall(INVALID["bare line feeds"])
            refused = opened.recv(1000).lower()
            assert refused.startswith(b"http/1.1 400")
            assert b"strict-transport-security" in refused
