"""A run that is held with what the browser tests have running: a JupyterLab server, its kernel, a forked process."""

from __future__ import annotations

import urllib.request
from multiprocessing.connection import Connection

from held import hold
from kernels import Kernel
from ui.server import TOKEN


def say_nothing(pipe: Connection) -> None:
    pipe.send("ready")
    pipe.recv()


def test_that_is_held(lab_url: str) -> None:
    headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{lab_url}/api/kernels", method="POST", headers=headers, data=b"{}")
    urllib.request.urlopen(request).close()
    kernel = Kernel(say_nothing)
    assert kernel.hear() == "ready"
    hold()
    kernel.kill()
    kernel.end()
