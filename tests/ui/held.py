"""A run of tests that stays in its middle until it is interrupted: test_leftovers.py starts it, and nothing else does.

What it has running is what the browser tests and the tests of many kernels have: a JupyterLab server with a kernel, and
a process of multiprocessing's fork server.
"""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.request
from multiprocessing.connection import Connection
from pathlib import Path

from kernels import Kernel
from ui.server import TOKEN
from waiting import wait_until

HELD = "DPNB_TEST_HELD"
"""The environment variable that names a folder: `up` appears in it, `go on` is waited for, and `leave` may be there."""

FORGOTTEN: list[subprocess.Popen[bytes]] = []


def say_nothing(pipe: Connection) -> None:
    pipe.send("ready")
    pipe.recv()


def test_that_is_held(lab_url: str) -> None:
    headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{lab_url}/api/kernels", method="POST", headers=headers, data=b"{}")
    urllib.request.urlopen(request).close()
    kernel = Kernel(say_nothing)
    assert kernel.hear() == "ready"
    folder = Path(os.environ[HELD])
    (folder / "up").touch()
    wait_until((folder / "go on").exists, "the word to go on")
    kernel.kill()
    kernel.end()
    if (folder / "leave").exists():
        FORGOTTEN.append(
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10**6)  # a forgotten process"])
        )
