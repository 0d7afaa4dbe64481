"""A JupyterLab server of the tests' own: nothing of the user's is read, nothing is left behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kernel_pool.forked_kernels import forking
from waiting import LIMIT

TOKEN = "t"
CONFIGURATION = Path(__file__).resolve().parents[2] / ".ci" / "jupyter"
"""Configuration of `make lab`, without the extensions that change how every notebook is opened, saved and run."""

SERVER_SIDE = "jupyter_server_nbmodel"
"""The server's extension that runs the cells; the others of `CONFIGURATION` share notebooks between several pages."""

OPENS = "--LabApp.default_url=/lab/tree/examples/01-quickstart.ipynb"
"""With which `make lab` opens the quickstart; a test of its own checks that it is the same."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(home: Path, runtime: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Those variables with every place where Jupyter and IPython keep their state moved below `home`.

    Only what is there while it runs goes to `runtime`: paths of sockets must be short.
    """
    places = {
        **{f"JUPYTER_{name}_DIR": home / name.lower() for name in ("CONFIG", "DATA")},
        "JUPYTER_RUNTIME_DIR": runtime,
        **{f"JUPYTERLAB_{name}_DIR": home / name.lower() for name in ("SETTINGS", "WORKSPACES")},
        "IPYTHONDIR": home / "ipython",
    }
    return {**variables, **{name: str(path) for name, path in places.items()}}


def _silence_news(home: Path) -> None:
    """Answer beforehand whether the Lab may fetch news: the question would cover the page."""
    folder = home / "settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    (folder / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}), encoding="utf-8")


def _choose_extensions(home: Path, *, collaboration: bool, server_side: bool) -> None:
    """Let the server, and the page, load those of the extensions that `CONFIGURATION` disables."""
    for name, kind in (("jupyter_server_config.json", "jpserver_extensions"), ("labconfig/page_config.json", "")):
        content = json.loads((CONFIGURATION / name).read_text(encoding="utf-8"))
        extensions = content["ServerApp"][kind] if kind else content["disabledExtensions"]
        for extension in extensions:
            runs_cells = extension.replace("-", "_").endswith(SERVER_SIDE)
            extensions[extension] = (server_side if runs_cells else collaboration) is bool(kind)
        if not kind:
            content["buildCheck"] = False  # for each page, JupyterLab would start Node twice
        target = home / "config" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(content), encoding="utf-8")


def _wait_until_up(runtime: Path, process: subprocess.Popen[bytes], log: Path) -> str:
    """Address of the server, once it answers.

    The server says it in a file: its port is another than the one it was given if a process took that meanwhile.
    """
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                url = str(json.loads(file.read_text(encoding="utf-8"))["url"]).rstrip("/")
                with urllib.request.urlopen(f"{url}/api/status?token={TOKEN}", timeout=LIMIT):
                    return url
            except (ValueError, OSError):  # half written, or not listening yet
                continue
        time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-4000:]}")


@contextmanager
def running_lab(
    home: Path,
    root: Path,
    python: str | Path = sys.executable,
    variables: Mapping[str, str] = os.environ,
    *,
    collaboration: bool = False,
    server_side: bool = False,
) -> Iterator[str]:
    """Run JupyterLab on a free port with `root` as its folder; yields its address.  Makes `home` and `root` if needed.

    By default it is the JupyterLab of this environment; else of the one that `python` belongs to.  With `collaboration`
    several pages share a notebook; with `server_side` the server runs its cells.
    """
    for folder in (home, root):
        folder.mkdir(parents=True, exist_ok=True)
    _silence_news(home)
    _choose_extensions(home, collaboration=collaboration, server_side=server_side)
    command = [
        *(str(python), "-m", "jupyterlab", "--no-browser", "--allow-root"),
        *(f"--ServerApp.port={_free_port()}", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={TOKEN}"),
        OPENS,
        # The tests reach into the page through `jupyterapp`.
        *("--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"),
        "--LanguageServerManager.autodetect=False",  # to look for them starts npm
        # Ports that are free when a kernel is given them may be another program's when it starts.
        "--KernelManager.transport=ipc",
        *("--LabApp.extension_manager=readonly", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"),
    ]
    log = home / "server.log"
    with log.open("wb") as sink, tempfile.TemporaryDirectory(prefix="dpnb-") as runtime:
        env = _environment(home, runtime, variables)
        if python == sys.executable:
            env = forking(env)
        process = subprocess.Popen(command, env=env, cwd=root, stdout=sink, stderr=subprocess.STDOUT)
        try:
            yield _wait_until_up(Path(runtime), process, log)
        finally:
            process.terminate()  # the server shuts its kernels down
            try:
                process.wait(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
