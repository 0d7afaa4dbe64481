"""Open JupyterLab on the quickstart notebook: ``make lab``.

``PORT=`` and ``LAB_FLAGS=`` pass through the Makefile. JupyterLab's own state stays inside the clone's environment, so
that no settings, workspaces or open tabs come from elsewhere and none are left behind. The extensions for
collaboration, which ``make test-all`` installs into the same environment, are not loaded: they change how each notebook
is opened, saved and run.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import sys
import webbrowser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = Path(sys.prefix) / "jupyter"
WITHOUT_COLLABORATION = ROOT / ".ci" / "jupyter"
"""Configuration in which the extensions for collaboration are disabled, in the server and on the page."""

NOTEBOOK = "examples/01-quickstart.ipynb"


def trouble(port: int) -> str:
    """Why the server cannot listen on a port; empty if it can."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server itself will bind it
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
    return ""


def main() -> None:
    """Become the JupyterLab server."""
    flags = shlex.split(os.environ.get("LAB_FLAGS", ""))
    port = os.environ.get("PORT", "")
    if port and not (port.isdecimal() and 0 < int(port) < 65536):
        sys.exit(f"make lab: PORT={port} is not a port. Name one from 1024 to 65535, or leave PORT out.")
    if port and (why := trouble(int(port))):
        sys.exit(f"make lab: port {port} {why}. Name another with PORT=, or leave PORT out to use a free one.")
    if "--no-browser" not in flags:
        try:
            webbrowser.get()
        except webbrowser.Error:
            print("make lab: no browser is known here; open the address below in one.", flush=True)
            flags.append("--no-browser")

    settings = HOME / "config" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    # The question whether the Lab may fetch news would cover the page.
    (settings / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}), encoding="utf-8")
    places = {f"JUPYTER_{name}_DIR": str(HOME / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    configuration = os.pathsep.join(filter(None, [str(WITHOUT_COLLABORATION), os.environ.get("JUPYTER_CONFIG_PATH")]))
    environment = {
        **os.environ,
        **places,
        "JUPYTER_CONFIG_PATH": configuration,
        "IPYTHONDIR": str(HOME / "ipython"),
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", f"--notebook-dir={ROOT}"),
        # In the address, so that the one which is printed opens the notebook too.
        f"--LabApp.default_url=/lab/tree/{NOTEBOOK}",
        *([f"--port={port}", "--ServerApp.port_retries=0"] if port else []),
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
        *flags,
    ]
    os.execve(sys.executable, command, environment)


if __name__ == "__main__":
    main()
