"""The service as a process: signals, reload, its socket, and kills at any point."""

from __future__ import annotations

import grp
import os
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from dpnb._request import LaunchMechanism, Release, request_from
from dpnb._target import Target
from dpnb.curator.audit import audit
from dpnb.errors import ExecutionStopped, RequestError, ServiceUnavailable
from dpnb.ledger.charge import TABLE_FILES
from dpnb.remote.connect import connect
from dpnb.service.access.tokens import new_token
from dpnb.wire.decoding import encode_envelope
from dpnb.wire.messages import Envelope
from service.crashing import serve_until
from service.curating import resume_held
from service.forked import Forked
from service.served import open_people, people
from waiting import LIMIT, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.waits]

HERE = Path(__file__).parent
TABLE = '[tables.{0}]\ndeclaration = "{0}.toml"\ndata = "people.csv"\n'
DECLARATION = (
    'name = "{0}"\nbudget = {{ mu = 1 }}\n[schema]\nage = {{ type = "bounded", low = 0, high = 100, integer = true }}\n'
)
POINTS = (
    "before the charge",
    "after the charge",
    "before the noise",
    "before the answer is written",
    "before the reply",
)


class Curator:
    """A folder with settings, a table and a token."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket, self.settings = folder, folder / "run" / "dpnb.sock", folder / "curator.toml"
        people().to_csv(folder / "people.csv", index=False)
        for name in ("people", "others"):
            (folder / f"{name}.toml").write_text(DECLARATION.format(name), "utf-8")
        self.write("people")
        self.token = new_token(folder / "tokens.json", "ana")
        self._token = new_token(folder / "tokens.json", "carl", role="curator")

    def write(self, *tables: str) -> None:
        self.settings.write_text(
            'log = "service.log"\ntime_grid = false\n' + "".join(map(TABLE.format, tables)), "utf-8"
        )

    @contextmanager
    def served(self, point: str = "") -> Iterator[Forked]:
        with closing(Forked(serve_until, point, str(self.settings))) as process:
            assert "serving at unix://" in process.stdout.readline()
            yield process

    def client(self) -> httpx.Client:
        return httpx.Client(
            transport=httpx.HTTPTransport(uds=str(self.socket)),
            base_url="http://localhost",
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            timeout=LIMIT,
        )

    def post(self, body: bytes) -> Any:
        with self.client() as client:
            reply = client.post("/v3/tables/people/requests", content=body)
            return msgspec.json.decode(reply.content)

    def resume(self) -> list[int]:
        """Let run again what ran when the service ended; the ledger's numbers of its rows.

        The first row of a ledger is about the contents of the table's files, which no analyst sees.
        """
        return [one.row for one in resume_held(f"unix://{self.socket}", self._token, "people")]

    def tables(self) -> list[str]:
        with self.client() as client:
            return list(client.get("/v3/tables").json())

    def log(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in (self.folder / "service.log").read_bytes().splitlines()]

    def events(self) -> list[str]:
        return [str(line["event"]) for line in self.log()]


@pytest.fixture
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return Curator(tmp_path_factory.mktemp("s"))  # a short path: it is that of a socket


def count(number: str = "a", least: int = 0) -> bytes:
    session = open_people(":memory:")
    query = session.frame[session.frame["age"] >= least].count()
    session.ledger.close()
    return encode_envelope(Envelope(number, Release(query.plan, query.view, Target("mu", Fraction(1, 10)))))


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_and_the_same_request_again_are_one_charge(curator: Curator, point: str) -> None:
    body = count()
    with curator.served(point) as killed:
        with pytest.raises(httpx.TransportError):
            curator.post(body)
        assert killed.wait(LIMIT) == -signal.SIGKILL
    assert curator.socket.exists()  # stale: nobody listens
    was_charged = point not in ("before the charge", "before the reply")
    with curator.served():
        for number in range(2 * was_charged):  # also under another id
            refused = curator.post(body if number == 0 else count("b"))
            assert (refused["error"], refused["rows"]["rows"][0]["values"]["status"]) == (
                "ExecutionStopped",
                "reserved",
            )
            assert "row 1 was charged, and the service ended before it was answered" in refused["message"]
        assert curator.resume() == [2] * was_charged
        first, again = curator.post(body), curator.post(body)
    assert first == again
    assert first["ids"] == [1]
    kinds = ["release", *["act"] * was_charged]
    assert [row["values"]["kind"] for row in first["rows"]["rows"]] == kinds
    ledger = open_people(curator.folder / "people.dpnb").ledger
    charges = [charge for charge in ledger.charges() if charge.kind != TABLE_FILES]
    assert [(charge.kind, charge.status) for charge in charges] == [(kind, "released") for kind in kinds]
    ledger.close()
    assert audit(str(curator.folder / "people.dpnb")).is_fine


def test_a_request_that_kills_the_service_is_not_executed_again_by_its_client(curator: Curator) -> None:
    """An attack: each restart would execute it again, and the client repeats it on its own."""
    body = count()
    with curator.served("before the noise") as killed:
        with pytest.raises(httpx.TransportError):
            curator.post(body)
        killed.wait(LIMIT)
    with curator.served("before the noise") as again:
        with closing(connect(f"unix://{curator.socket}", "people", token=curator.token)) as session:
            query = session.frame[session.frame["age"] >= 0].count()
            for _ in range(3):
                with pytest.raises(ExecutionStopped, match="ask the curator"):
                    query.release(mu="1/10")
        assert again.poll() is None
        assert curator.resume() == [2]
        with pytest.raises(httpx.TransportError):  # the control: it does kill whatever executes it
            curator.post(body)
        assert again.wait(LIMIT) == -signal.SIGKILL
    with curator.served():
        assert curator.post(body)["error"] == "ExecutionStopped"  # resumed once, it waits again
        assert curator.resume() == [2]
        assert curator.post(body)["ids"] == [1]


def test_a_restart_ends_open_scans_which_stay_charged(curator: Curator) -> None:
    session = open_people(":memory:")
    session.above_threshold(100, name="scan", epsilon=0.1)
    request = request_from(session.ledger.charges()[-1].request)
    session.ledger.close()
    assert isinstance(request, LaunchMechanism)
    launch = encode_envelope(Envelope("a", request))
    with curator.served() as process:
        assert curator.post(launch)["ids"] == [1]
        process.kill()
        process.wait(LIMIT)
    with curator.served():
        reply = curator.post(launch)
        with curator.client() as client:
            rows = client.get("/v3/tables/people/rows?after=0").json()["rows"]
    kinds = [row["values"]["kind"] for row in rows]
    assert kinds == ["launch", "close"], reply
    assert "scan_closed" in curator.events()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_after_its_streams_have_ended(curator: Curator, ending: signal.Signals) -> None:
    with curator.served() as process, curator.client() as client:
        assert curator.post(count())["ids"] == [1]
        with client.stream("GET", "/v3/tables/people/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == 'data: {"rows":1,"answered":1}'
            process.send_signal(ending)
            assert not [line for line in lines if line]
        assert process.wait(LIMIT) == 0
    assert curator.events()[-2:] == ["stopping", "stopped"]
    assert not curator.socket.exists()


def test_requests_that_wait_when_it_stops_are_answered_or_not_charged(curator: Curator) -> None:
    bodies = [count(f"r{number}", number) for number in range(12)]
    answered: list[Any] = []

    def ask(body: bytes) -> None:
        with suppress(httpx.TransportError):
            answered.append(curator.post(body))

    with curator.served() as process:
        threads = [threading.Thread(target=ask, args=(body,)) for body in bodies]
        for thread in threads:
            thread.start()
        wait_until(lambda: answered, "an answer")
        process.terminate()
        assert process.wait(LIMIT) == 0
        for thread in threads:
            thread.join(LIMIT)
    ledger = open_people(curator.folder / "people.dpnb").ledger
    assert [charge.status for charge in ledger.charges() if charge.kind != TABLE_FILES] == ["released"] * len(answered)
    ledger.close()


def test_a_second_signal_does_not_wait_for_the_running_request(curator: Curator) -> None:
    def ask() -> None:
        with suppress(httpx.TransportError, msgspec.MsgspecError):  # cut off, or without a reply that can be read
            curator.post(body)

    body = count()
    with curator.served("never ends") as process:
        thread = threading.Thread(target=ask)
        thread.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "reading\n"
        process.terminate()
        wait_until(lambda: "stopping" in curator.events(), "the first signal")
        process.terminate()
        assert process.wait(LIMIT) == 1
        thread.join(LIMIT)
    with curator.served():
        assert curator.post(count())["error"] == "ExecutionStopped"
        assert curator.resume() == [2]
        assert curator.post(count())["ids"] == [1]  # its charge is taken up
    ledger = open_people(curator.folder / "people.dpnb").ledger
    charges = [charge for charge in ledger.charges() if charge.kind != TABLE_FILES]
    assert [charge.status for charge in charges] == ["released"] * 2  # and the curator's act
    ledger.close()


def test_sighup_adds_and_removes_tables_and_an_invalid_file_changes_nothing(curator: Curator) -> None:
    def reloaded(*events: str) -> None:
        before = len(curator.log())
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: {*events} & {*curator.events()[before:]}, "the reload")

    with curator.served() as process:
        assert curator.tables() == ["people"]
        curator.write("people", "others")
        reloaded("reloaded")
        assert curator.tables() == ["others", "people"]
        assert curator.post(count())["ids"] == [1]
        curator.settings.write_text("[tables", "utf-8")
        reloaded("reload_refused")
        assert curator.tables() == ["others", "people"]
        assert "line 1: must be TOML" in curator.log()[-1]["error"]["message"]
        session = connect(f"unix://{curator.socket}", "people", token=curator.token)
        connection = session._core.connection
        assert connection is not None
        wait_until(lambda: connection.text == "up to date", "the stream of events")
        curator.write("others")
        reloaded("reloaded")
        assert curator.tables() == ["others"]
        wait_until(lambda: "no longer has this table" in connection.text, "the removal", lambda: connection.text)
        with pytest.raises(RequestError, match="table: must be one that the service has now"):
            session.frame.count().release(mu="1/5")
        session.close()
        curator.write("others", "people")
        reloaded("reloaded")
        assert curator.post(count())["ids"] == [1]  # the ledger was closed and opened again
        process.terminate()
        assert process.wait(LIMIT) == 0


def test_the_socket_is_the_curators_and_is_not_taken_from_a_running_service(curator: Curator) -> None:
    with curator.served():
        assert stat.S_IMODE(curator.socket.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(curator.socket.stat().st_mode) == 0o660
        (curator.folder / "again.toml").write_text(TABLE.format("others"), "utf-8")
        command = [sys.executable, "-m", "dpnb", "serve"]
        for settings, text in (("again.toml", "another process listens on"), ("curator.toml", "used by another")):
            done = subprocess.run(
                [*command, str(curator.folder / settings)], capture_output=True, text=True, timeout=LIMIT, check=False
            )
            assert done.returncode == 2
            assert text in done.stderr
            assert done.stderr.splitlines()[-1].startswith("dpnb: ")
        assert curator.tables() == ["people"]


def test_plain_http_on_the_loopback_checks_the_host(curator: Curator) -> None:
    text = curator.settings.read_text("utf-8")
    curator.settings.write_text('host = "127.0.0.1"\nport = 0\n' + text, "utf-8")
    command = [sys.executable, "-m", "dpnb", "serve", str(curator.settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[3].rstrip(";")
            assert url.startswith("http://127.0.0.1:")
            assert httpx.get(f"{url}/v3/health", timeout=LIMIT).status_code == 200
            assert httpx.get(f"{url}/v3/health", headers={"Host": "evil.example"}, timeout=LIMIT).status_code == 400
            assert "plain_http" in curator.events()
        finally:
            process.terminate()
            assert process.wait(LIMIT) == 0


def test_the_socket_admits_a_group_and_ledger_and_log_nobody_else(curator: Curator) -> None:
    own = [one for one in grp.getgrall() if os.geteuid() == 0 or one.gr_gid in os.getgroups()]
    group = next((one for one in own if one.gr_gid != os.getegid()), None)
    if group is None:
        pytest.skip("this user is in one group only")
    curator.settings.write_text(f'group = "{group.gr_name}"\n' + curator.settings.read_text("utf-8"), "utf-8")
    before = os.umask(0o022)
    try:
        with curator.served():
            assert curator.post(count())["ids"] == [1]
            for path, mode in ((curator.socket, 0o660), (curator.socket.parent, 0o750)):
                status = path.stat()
                assert (stat.S_IMODE(status.st_mode), status.st_gid) == (mode, group.gr_gid)
            for name in ("people.dpnb", "people.dpnb-service", "service.log", "service-logins.log", "tokens.json"):
                assert stat.S_IMODE((curator.folder / name).stat().st_mode) == 0o600, name
    finally:
        os.umask(before)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_with_a_certificate_that_the_analyst_trusts(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = (str(curator.folder / name) for name in ("cert.pem", "key.pem"))
    options = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        ["openssl", "req", *options.split(), "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
        timeout=LIMIT,
    )
    curator.settings.write_text(
        'host = "0.0.0.0"\nport = 0\nnames = ["localhost"]\n[tls]\ncertificate = "cert.pem"\nkey = "key.pem"\n'
        + TABLE.format("people"),
        "utf-8",
    )
    command = [sys.executable, "-m", "dpnb", "serve", str(curator.settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[3].rstrip(";")
            assert url.startswith("https://localhost:")
            with pytest.raises(ServiceUnavailable, match="certificate"):  # the machine does not trust it
                connect(url, "people", token=curator.token)
            monkeypatch.setenv("SSL_CERT_FILE", certificate)
            with pytest.raises(ServiceUnavailable, match="certificate"):  # it is of another name
                connect(url.replace("localhost", "127.0.0.1"), "people", token=curator.token)
            session = connect(url, "people", token=curator.token)
            assert session.frame.count().release(mu="1/10").estimate is not None
            wait_until(lambda: session._core.connection.text == "up to date", "the stream of events")
            session.close()
            trusted = ssl.create_default_context(cafile=certificate)
            other = httpx.get(f"{url}/v3/health", headers={"Host": "evil.example"}, verify=trusted)
            assert other.status_code == 400
            with pytest.raises(httpx.TransportError):
                httpx.get(url.replace("https", "http") + "/v3/health")
        finally:
            process.terminate()
            assert process.wait(LIMIT) == 0
