"""Kernels that are forked from a process that has imported what notebooks import, which takes two seconds of a core.

`ForkedProvisioner` starts kernels for Jupyter as its own does, in all else: with the command's arguments, environment,
folder and output.  `forking` makes a process that is to be started use it, and `forking_here` this one.  The process
from which kernels are forked ends with the one that started it, and its kernels then end as others do without a parent.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

NAME = "dpnb-forked"
# Not ipywidgets: at its import it tells the kernel of the messages that it answers.
PRELOADED = ("ipykernel.debugger", "ipykernel.ipkernel", "ipykernel.kernelapp", "IPython.core.completer", "pandas")
PRELOADED_OF_DPNB = ("dpnb", "dpnb.session.session", "dpnb.notebook.extension", "mpmath", "psutil")
FOR_FIGURES = ("nbformat", "plotly.graph_objs._figure", "scipy.stats")
MORE = "DPNB_KERNELS_PRELOADED"
"""Environment variable: further modules, separated by spaces."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Threads that wait for each other take more of a busy machine than they save."""
LAUNCHER = ["-m", "ipykernel_launcher"]


class Template:
    """The process from which kernels are forked, and this process's line to it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # A session of its own: what Jupyter sends to a kernel's group, or a terminal to this one's, is not for it.
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,
            )

    def fork(self, command: list[str], folder: str, variables: Mapping[str, str]) -> tuple[int, socket.socket]:
        """A kernel's process, and a line on which its exit code will come."""
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            wanted = json.dumps([command, folder, dict(variables)]).encode()
            socket.send_fds(self._line, [wanted], [theirs.fileno(), 1, 2])
        return int(line.recv(100)), line


class ForkedKernel:
    """What Jupyter uses of `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, template: Template, command: list[str], folder: str, variables: Mapping[str, str]) -> None:
        self.pid, self._line = template.fork(command, folder, variables)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it is running."""
        return self._hear(socket.MSG_DONTWAIT)

    def wait(self) -> int:
        """Wait for its end."""
        code = self._hear(0)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it is still there."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _hear(self, flags: int) -> int | None:
        if self.returncode is None:
            try:
                said = self._line.recv(100, flags)
            except BlockingIOError:
                return None
            self.returncode = int(said) if said else -signal.SIGKILL  # nothing, where the template is gone
            self._line.close()
        return self.returncode


def provisioner() -> type[Any]:
    """Jupyter's provisioner; made here, since the processes that are forked must not import its module."""
    from jupyter_client.provisioning import LocalProvisioner

    class ForkedProvisioner(LocalProvisioner):
        """Forks kernels of this Python, and starts others."""

        template: Template | None = None

        async def launch_kernel(self, cmd: list[str], **arguments: Any) -> Any:
            """Start a kernel."""
            if cmd[1:3] != LAUNCHER or not os.path.samefile(cmd[0], sys.executable):
                return await super().launch_kernel(cmd, **arguments)
            cls = type(self)
            if cls.template is None or cls.template.process.poll() is not None:
                cls.template = Template()
            folder = str(arguments.get("cwd") or Path.cwd())
            self.process = ForkedKernel(cls.template, cmd[3:], folder, arguments["env"])
            self.pid = self.pgid = self.process.pid
            self.cwd = folder
            return self.connection_info

    return ForkedProvisioner


def __getattr__(name: str) -> Any:
    if name == "ForkedProvisioner":
        globals()[name] = provisioner()
        return globals()[name]
    raise AttributeError(name)


def forking(variables: Mapping[str, str], modules: Iterable[str] = ()) -> dict[str, str]:
    """Those variables, so that a process forks its kernels, from one that has imported further modules."""
    paths = [str(Path(__file__).parent), *filter(None, [variables.get("PYTHONPATH")])]
    added = {"PYTHONPATH": os.pathsep.join(paths), "JUPYTER_DEFAULT_PROVISIONER_NAME": NAME, MORE: " ".join(modules)}
    return {**variables, **added}


@contextlib.contextmanager
def forking_here() -> Iterator[None]:
    """Fork the kernels that this process starts meanwhile; they may draw figures.

    A kernel that is to be recognised from outside, by its command, must not be forked.
    """
    from importlib.metadata import EntryPoint

    from jupyter_client.provisioning.factory import KernelProvisionerFactory

    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:ForkedProvisioner", factory.GROUP_NAME)
    before = factory.default_provisioner_name
    os.environ[MORE] = " ".join(FOR_FIGURES)
    factory.default_provisioner_name = NAME
    try:
        yield
    finally:
        factory.default_provisioner_name = before


# --- the process from which kernels are forked ------------------------------------------------------------------------


def run_kernel(command: list[str], folder: str, variables: Mapping[str, str], output: list[int]) -> None:
    """What a forked process does: it becomes a kernel."""
    os.setsid()
    for number, descriptor in enumerate(output, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from ipykernel.kernelapp import IPKernelApp

    from dpnb.notebook.panel import _panel

    _panel._process_id = str(uuid.uuid4())  # by which the page knows that a kernel has restarted
    sys.argv = ["ipykernel_launcher", *command]
    IPKernelApp.launch_instance(argv=[*command, f"--IPKernelApp.parent_handle={os.getppid()}"])


def fork_kernels(line: socket.socket) -> None:
    """Fork a kernel for each request; tell those who asked when it ends."""
    kernels: dict[int, socket.socket] = {}
    while True:
        line.settimeout(0.05 if kernels else None)
        try:
            wanted, descriptors, _, _ = socket.recv_fds(line, 1 << 20, 3)
        except TimeoutError:
            wanted, descriptors = None, []
        if wanted == b"":
            return
        if wanted is not None:
            asker = socket.socket(fileno=descriptors[0])
            pid = os.fork()
            if pid == 0:
                for other in (line, asker, *kernels.values()):
                    other.close()
                run_kernel(*json.loads(wanted), descriptors[1:])
                return
            kernels[pid] = asker
            for descriptor in descriptors[1:]:
                os.close(descriptor)
            asker.send(str(pid).encode())
        while kernels and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with kernels.pop(ended[0]) as asker, contextlib.suppress(OSError):  # who asked is gone
                asker.send(str(os.waitstatus_to_exitcode(ended[1])).encode())


def leave() -> None:
    """End at once: to free what was imported, object by object, takes a fork longer than Jupyter waits for a kernel."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    atexit.register(leave)  # what is registered first is called last
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in (*PRELOADED, *PRELOADED_OF_DPNB, *os.environ.get(MORE, "").split()):
        importlib.import_module(module)
    importlib.import_module("dpnb.ledger.sqlite_file").SYNCHRONOUS = "OFF"  # as in tests/conftest.py: no power is cut
    sys.path.pop(0)  # this folder: a kernel has its own in its place
    gc.freeze()  # a collection would copy every page of this process
    fork_kernels(socket.socket(fileno=int(sys.argv[1])))
