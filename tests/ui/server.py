"""A JupyterLab server of the tests' own: nothing of the user's is read, nothing is left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import LIMIT

TOKEN = "t"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path, runtime: str) -> dict[str, str]:
    """This environment with every place where Jupyter and IPython keep their state moved below `home`.

    Only what is there while it runs goes to `runtime`: paths of sockets must be short.
    """
    places = {
        **{f"JUPYTER_{name}_DIR": home / name.lower() for name in ("CONFIG", "DATA")},
        "JUPYTER_RUNTIME_DIR": runtime,
        **{f"JUPYTERLAB_{name}_DIR": home / name.lower() for name in ("SETTINGS", "WORKSPACES")},
        "IPYTHONDIR": home / "ipython",
    }
    return {**os.environ, **{name: str(path) for name, path in places.items()}}


def _silence_news(home: Path) -> None:
    """Answer beforehand whether the Lab may fetch news: the question would cover the page."""
    folder = home / "settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    (folder / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}), encoding="utf-8")


def _wait_until_up(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/api/status?token={TOKEN}", timeout=LIMIT):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-4000:]}")


@contextmanager
def running_lab(home: Path, root: Path) -> Iterator[str]:
    """Run JupyterLab on a free port with `root` as its folder; yields its address."""
    url = f"http://127.0.0.1:{(port := _free_port())}"
    _silence_news(home)
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={TOKEN}"),
        # The tests reach into the page through `jupyterapp`.
        *("--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"),
        # Ports that are free when a kernel is given them may be another program's when it starts.
        "--KernelManager.transport=ipc",
        *("--LabApp.extension_manager=readonly", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
    ]
    log = home / "server.log"
    with log.open("wb") as sink, tempfile.TemporaryDirectory(prefix="dpnb-") as runtime:
        process = subprocess.Popen(
            command, env=_environment(home, runtime), cwd=root, stdout=sink, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_up(url, process, log)
            yield url
        finally:
            process.terminate()  # the server shuts its kernels down
            try:
                process.wait(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
