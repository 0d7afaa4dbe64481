"""The folder of a service's socket."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpnb.errors import InvalidValueError
from dpnb.service.configuration.ports import SocketAddress, listen


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dpnb-") as made:  # paths of sockets must be short
        yield Path(made)


def test_folder_that_cannot_be_made_is_named_with_a_remedy(folder: Path) -> None:
    (folder / "file").touch()
    with pytest.raises(InvalidValueError, match=r"or one that this account can make; Not a directory; make it as root"):
        listen(SocketAddress(folder / "file" / "run" / "dpnb.sock"))


def test_folder_that_others_can_change_is_refused(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(InvalidValueError, match="only this account may change it"):
        listen(SocketAddress(folder / "dpnb.sock"))
    folder.chmod(0o711)
    listening = listen(SocketAddress(folder / "dpnb.sock"))
    listening.remove()
