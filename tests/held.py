"""A run of tests that stays in its middle until it is interrupted: test_leftovers.py starts it, and nothing else does.

What it has running stands in for what the browser tests and the tests of many kernels have, which `ui/held.py` starts
in earnest: a server that Ctrl-C does not end, its kernel in a session of its own, and a process of a fork server.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

from waiting import wait_until

HELD = "DPNB_TEST_HELD"
"""The environment variable that names a folder: `up` appears in it, `go on` is waited for, and `leave` may be there."""

KERNEL = "# stands in for a kernel\nimport time; time.sleep(10**6)"
SERVER = f"""# stands in for a server
import signal, subprocess, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
kernel = subprocess.Popen([sys.executable, "-c", {KERNEL!r}], start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: kernel.terminate())
print("up", flush=True)
kernel.wait()
"""
FORGOTTEN: list[subprocess.Popen[bytes]] = []


def hold() -> None:
    """Say that all is running, and wait for the word to go on."""
    folder = Path(os.environ[HELD])
    (folder / "up").touch()
    wait_until((folder / "go on").exists, "the word to go on")


def test_that_is_held() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"up\n"
    forked = multiprocessing.get_context("forkserver").Process(target=time.sleep, args=(10**6,))
    forked.start()
    hold()
    forked.kill()
    forked.join()
    server.terminate()
    server.communicate()
    if (Path(os.environ[HELD]) / "leave").exists():
        FORGOTTEN.append(
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10**6)  # a forgotten process"])
        )
