"""A run of tests that stays in its middle until it is interrupted: test_leftovers.py starts it, and nothing else does.

What it has running is what the browser tests and the tests of many kernels have: a JupyterLab server with a kernel, and
a process of multiprocessing's fork server.  Server and kernel may be stand-ins, which start in a moment: the kernel too
has a session of its own and ends with an orderly server alone, and no key and no closed terminal ends either.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ui.server import TOKEN
from waiting import wait_until

HELD = "DPNB_TEST_HELD"
"""The environment variable that names a folder: `up` appears in it, `go on` is waited for, and `leave` may be there."""

JUPYTER = "DPNB_TEST_HELD_JUPYTER"
"""The environment variable with which the server is JupyterLab's."""

DEAF = "import signal; [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)]"
KERNEL = f"# forked_kernels\n{DEAF}; signal.pause()"
SERVER = f"""# jupyterlab
{DEAF}
import subprocess, sys
kernel = subprocess.Popen([sys.executable, "-c", {KERNEL!r}], start_new_session=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(kernel.kill()))
print("up", flush=True)
signal.pause()
"""

FORGOTTEN: list[subprocess.Popen[bytes]] = []


@pytest.fixture
def server_with_kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    if JUPYTER in os.environ:
        url = f"{request.getfixturevalue('lab_url')}/api/kernels"
        headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(url, method="POST", headers=headers, data=b"{}")).close()
        yield
        return
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        yield
        server.terminate()


@pytest.mark.usefixtures("server_with_kernel")
def test_that_is_held() -> None:
    process = multiprocessing.get_context("forkserver").Process(target=signal.pause)
    process.start()
    folder = Path(os.environ[HELD])
    (folder / "up").touch()
    wait_until((folder / "go on").exists, "the word to go on")
    process.kill()
    process.join()
    if (folder / "leave").exists():
        FORGOTTEN.append(
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10**6)  # a forgotten process"])
        )
