"""Real PostgreSQL and MariaDB servers for tests: in a temporary folder, on a Unix socket and a free port.

Neither server starts as root, so there it is given to an account without rights.  Both inherit the environment, so
`leftovers` ends them if the tests are killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_until

READER = "dpnb_tests"
PASSWORD = "kept-out-of-everything"
"""Of this account of both servers, which may read; tests look for it where it must not be."""

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str  # without user and database
    client: tuple[str, ...]  # the command that executes SQL as the administrator

    def execute(self, sql: str, database: str = "test") -> str:
        """Execute statements as the administrator, and return what they print."""
        done = subprocess.run([*self.client, database], input=sql.encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


def postgresql_programs() -> Path | None:
    """The folder of PostgreSQL's programs, of the newest version; Debian has them on no path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def mariadb_programs() -> tuple[str, str] | None:
    """The server of MariaDB and what makes its folder."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    server, install = (shutil.which(name, path=path) for name in ("mariadbd", "mariadb-install-db"))
    return (server, install) if server and install else None


@contextlib.contextmanager
def postgresql() -> Iterator[Server]:
    """A server of PostgreSQL."""
    programs = postgresql_programs()
    assert programs is not None
    with _folder() as folder:
        data, port = folder / "data", _free_port()
        options = ["--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]
        _run([programs / "initdb", "-D", data, "-U", "admin", *options])
        settings = {"fsync": "off", "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "port": port}
        command = [programs / "postgres", "-D", data, *(f"--{key}={value}" for key, value in settings.items())]
        client = (
            programs / "psql",
            "-X",
            "-q",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            folder,
            "-p",
            port,
            "-U",
            "admin",
        )
        server = Server(f"postgresql://127.0.0.1:{port}", tuple(map(str, client)))
        with _running(command, signal.SIGQUIT, [*client, "-c", "select 1", "postgres"]):
            server.execute("create database test", "postgres")
            server.execute(f"create role {READER} login password '{PASSWORD}'; grant pg_read_all_data to {READER}")
            yield server


@contextlib.contextmanager
def mariadb() -> Iterator[Server]:
    """A server of MariaDB."""
    programs = mariadb_programs()
    assert programs is not None
    with _folder() as folder:
        data, port, file = folder / "data", _free_port(), folder / "socket"
        _run(
            [
                programs[1],
                "--no-defaults",
                f"--datadir={data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ]
        )
        settings = {"datadir": data, "socket": file, "port": port, "bind-address": "127.0.0.1", "sql-mode": ""}
        fast = [
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
            "--skip-log-bin",
            "--skip-name-resolve",
        ]
        command = [programs[0], "--no-defaults", *(f"--{key}={value}" for key, value in settings.items()), *fast]
        client = ("mariadb", "--no-defaults", "-N", "-B", "--default-character-set=utf8mb4", "-u", "root", "-S", file)
        server = Server(f"mariadb://127.0.0.1:{port}", tuple(map(str, client)))
        with _running(command, signal.SIGKILL, [*client, "-e", "select 1"]):
            account = f"{READER}@'127.0.0.1'"
            reader = f"create user {account} identified by '{PASSWORD}'; grant select on *.* to {account}"
            server.execute(f"create database test; {reader}", "mysql")
            yield server


# --- processes --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder of the account that runs the servers; short, since the path of a socket must be."""
    folder = Path(tempfile.mkdtemp(prefix="dpnb-", dir="/tmp"))
    try:
        if (user := _user()) is not None:
            shutil.chown(folder, user)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> str | None:
    return UNPRIVILEGED if os.geteuid() == 0 else None


def _run(command: list[object]) -> None:
    done = subprocess.run(
        [str(one) for one in command],
        user=_user(),
        cwd="/tmp",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()


def _answers(command: list[object]) -> bool:
    quiet = subprocess.DEVNULL
    return subprocess.run([str(one) for one in command], stdout=quiet, stderr=quiet, check=False).returncode == 0


@contextlib.contextmanager
def _running(command: list[object], end: signal.Signals, asks: list[object]) -> Iterator[None]:
    process = subprocess.Popen(
        [str(one) for one in command], user=_user(), cwd="/tmp", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _answers(asks), "a server that answers", process.poll)
        yield
    finally:
        process.send_signal(end)
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
