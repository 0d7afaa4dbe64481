"""How xdist divides a run among processes: its own way, without searches that grow with the square of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import SupportsIndex

import pytest
from _pytest.pathlib import ImportMode, import_path
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class Names(list[str]):
    """The names of all tests, each of which xdist asks the place of."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self._places = {name: at for at, name in enumerate(names)}

    def index(self, name: str, *_: SupportsIndex) -> int:
        """Where a test is, without a look at those before it."""
        return self._places[name]


class FileByFile(LoadFileScheduling):
    """Gives a process a file at a time, and forgets the files that it has finished.

    xdist's own counts the tests that are left of all files of a process after each test.
    """

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take the names of the tests that a process has found."""
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Names(collection)

    def _assign_work_unit(self, node: WorkerController) -> None:
        files = self.assigned_work[node]
        for file in [file for file, tests in files.items() if all(tests.values())]:
            del files[file]
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileByFile | None:
    """In place of xdist's own, which `make test` asks for."""
    return FileByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let the second process import the tests from the end, before it collects them in the same order as the first.

    In a new clone each rewrites and compiles half of them so, and reads the other half, in place of each all.  After
    `make test` nothing is left to compile.
    """
    is_second = os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and not os.environ.get("AFTER_TEST")
    here, root = session.config.invocation_params.dir, session.config.rootpath
    folders = [here / name for name in (session.config.args if is_second else ())]
    for path in sorted((path for folder in folders for path in folder.rglob("test_*.py")), reverse=True):
        with suppress(Exception, pytest.skip.Exception):  # the first process reports what it cannot import
            import_path(path, mode=ImportMode.importlib, root=root, consider_namespace_packages=False)
    return (yield)
