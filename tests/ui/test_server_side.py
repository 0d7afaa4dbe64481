"""The Lab whose server runs the cells, with notebooks that are not shared.

The page then shows the outputs of a cell only if its document has not changed since it was scheduled.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ui.server_side import ServerSideContract


@pytest.fixture(scope="module")
def lab_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a server of this module's own."""
    return tmp_path_factory.mktemp("server-side-lab")


@pytest.fixture(scope="module")
def lab_url(chromium: str, lab_home: Path) -> Iterator[str]:
    """Address of a JupyterLab whose server runs the cells."""
    from ui.server import running_lab

    with running_lab(lab_home / "home", lab_home / "root", server_side=True) as url:
        yield url


class TestOwnNotebooks(ServerSideContract):
    pass
