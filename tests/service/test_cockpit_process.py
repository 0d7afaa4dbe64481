"""The cockpit of a service as a process: its address, TLS, and how it stops with an open page."""

from __future__ import annotations

import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from dpnb.service.access.tokens import new_token
from forked import Forked
from service.hasty import serve_hastily
from service.test_process import DECLARATION
from waiting import LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.waits]

SETTINGS = (
    'log = "service.log"\n[cockpit]\nport = 0\n{0}\n[tables.people]\ndeclaration = "people.toml"\ndata = "people.csv"\n'
)


@contextmanager
def served(folder: Path, more: str = "") -> Iterator[tuple[str, Forked]]:
    """A service with a cockpit, and its address."""
    (folder / "people.csv").write_text("age\n3\n", "utf-8")
    (folder / "people.toml").write_text(DECLARATION.format("people"), "utf-8")
    (folder / "curator.toml").write_text(SETTINGS.format(more), "utf-8")
    with closing(Forked(serve_hastily, str(folder / "curator.toml"))) as process:
        first = process.stdout.readline()
        assert "serving at unix://" in process.stdout.readline()
        yield first.partition("page is at ")[2].partition(";")[0], process


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("c")  # a short path: it is that of a socket


def test_an_open_page_does_not_keep_the_service_from_stopping(folder: Path) -> None:
    with served(folder) as (url, process):
        token = new_token(folder / "tokens.json", "eve", role="curator")
        with httpx.Client(base_url=url, headers={"Origin": url}, timeout=LIMIT, verify=False) as client:
            assert "/cockpit.js" in client.get("/").text
            assert client.get("/v3/health").status_code == 404  # the analysts' routes are elsewhere
            headers = {"X-CSRF-Token": client.post("/login", json={"token": token}).json()["csrf"]}
            with client.stream("GET", "/api/events", headers=headers) as stream:
                events = stream.iter_lines()
                assert next(events) == "data: changed"
                process.send_signal(signal.SIGTERM)
                assert [line for line in events if line.startswith("data")] == []
        assert process.wait(LIMIT) == 0
    events = (folder / "service.log").read_text("utf-8")
    assert '"cockpit_started"' in events
    assert '"stopped"' in events
    assert token not in events + (folder / "service-logins.log").read_text("utf-8")


def test_with_tls_the_cookie_is_secure_and_plain_http_is_no_answer(folder: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    with served(folder, '[cockpit.tls]\ncertificate = "cert.pem"\nkey = "key.pem"\n') as (url, process):
        assert url.startswith("https://127.0.0.1:")
        token = new_token(folder / "tokens.json", "eve", role="auditor")
        context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        with httpx.Client(base_url=url, verify=context, headers={"Origin": url}, timeout=LIMIT) as client:
            reply = client.post("/login", json={"token": token})
            assert reply.headers["set-cookie"].startswith("__Host-")
            assert "secure" in reply.headers["set-cookie"].lower()
            assert reply.headers["strict-transport-security"] == "max-age=31536000"
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https", "http"), timeout=LIMIT)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 0
