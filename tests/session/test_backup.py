"""``python -m dpnb backup``: what is copied, with which rights, and what a restored copy brings back."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dpnb.__main__ import main
from dpnb.curator.audit import audit
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger import Ledger
from dpnb.session.backup import NOTE, SUFFIX, back_up, last_backup
from session.statements import opened


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=["open mask", "usual mask", "closed mask"])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    usual = os.umask(request.param)
    yield request.param
    os.umask(usual)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_copies_are_private_whatever_the_mask(tmp_path: Path, mask: int) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    session.frame.count().release(mu=0.1)
    secret = tmp_path / f"clinic.dpnb{SUFFIX}"
    secret.write_bytes(bytes(32))
    for _ in range(2):  # also where the copy replaces one
        session.frame["age"].mean().release(mu=0.01 * (session.ledger.count + 1))
        back_up(session.ledger.path, str(tmp_path / "copies"))  # the session is open
        folder = tmp_path / "copies"
        assert mode(folder) == 0o700
        assert {one.name: mode(one) for one in folder.iterdir()} == {"clinic.dpnb": 0o600, secret.name: 0o600}
    control = tmp_path / "control"
    shutil.copyfile(session.ledger.path, control)
    assert (mode(control) == 0o600) == (mask == 0o077)  # what a plain copy would be
    with closing(Ledger.read_only_copy(folder / "clinic.dpnb")) as copy:
        assert copy.last == session.ledger.last
        assert copy.charges() == session.ledger.charges()
    assert audit(str(folder / "clinic.dpnb")).is_fine
    assert (folder / secret.name).read_bytes() == bytes(32)
    value = session.frame.count().release(mu=0.1).estimate
    session.ledger.close()
    again = opened(folder / "clinic.dpnb")  # a session goes on with the copy, and repeats no charge
    assert again.frame.count().release(mu=0.1).estimate == value
    assert again.ledger.count == 3
    again.ledger.close()


def test_the_last_copy_is_noted_beside_the_ledger_alone(tmp_path: Path) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    assert last_backup(session.ledger.path) is None
    session.frame.count().release(mu=0.1)
    back_up(session.ledger.path, str(tmp_path / "copies"))
    found = last_backup(session.ledger.path)
    assert found is not None
    assert (found.rows, found.head) == session.ledger.last
    assert mode(tmp_path / f"clinic.dpnb{NOTE}") == 0o600
    assert last_backup(str(tmp_path / "copies" / "clinic.dpnb")) is None
    (tmp_path / f"clinic.dpnb{NOTE}").write_text("{}", "utf-8")  # of somebody else: it is only not known
    assert last_backup(session.ledger.path) is None


def test_an_older_ledger_does_not_replace_its_copy(tmp_path: Path) -> None:
    path, folder = tmp_path / "clinic.dpnb", str(tmp_path / "copies")
    session = opened(path)
    session.frame.count().release(mu=0.1)
    back_up(str(path), folder)
    shutil.copy(path, tmp_path / "older")
    session.frame["age"].mean().release(mu=0.1)
    back_up(str(path), folder)
    session.ledger.close()
    before = (tmp_path / "copies" / "clinic.dpnb").read_bytes()
    shutil.copy(tmp_path / "older", path)
    with pytest.raises(LedgerError, match=r"must contain the 2 rows of the copy .* an older state"):
        back_up(str(path), folder)
    (tmp_path / "other").mkdir()
    other = opened(tmp_path / "other" / "clinic.dpnb")
    other.frame.count().release(mu=0.1)
    other.ledger.close()
    with pytest.raises(LedgerError, match="or another ledger"):
        back_up(other.ledger.path, folder)
    assert (tmp_path / "copies" / "clinic.dpnb").read_bytes() == before


def test_a_folder_that_others_can_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    opened(path).ledger.close()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o750)
    for folder, text in (
        (tmp_path / "shared", "run chmod 700"),
        (tmp_path / "none" / "copies", "make the folder above it"),
        (tmp_path / "clinic.dpnb", "must be a folder"),
    ):
        with pytest.raises(InvalidValueError, match=text):
            back_up(str(path), str(folder))
    tmp_path.chmod(0o700)
    with pytest.raises(InvalidValueError, match="which the copy would replace"):
        back_up(str(path), str(tmp_path))
    assert list((tmp_path / "shared").iterdir()) == []


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    session.frame.count().release(mu=0.1)
    head = session.ledger.head
    session.ledger.close()
    folder = tmp_path / "copies"
    assert main(["backup", session.ledger.path, str(folder)]) == 0
    said = f"{folder / 'clinic.dpnb'}: 1 row; the hash of the last row is {head}\n"
    assert capsys.readouterr().out == said
    (folder / "clinic.dpnb").write_bytes(b"damaged")
    assert main(["backup", session.ledger.path, str(folder)]) == 2
    assert "copies" in capsys.readouterr().err
