"""The write-ahead log is used where it is safe, and the rollback journal everywhere else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dpnb.ledger import local_disk
from ledger.rows import filled, opened, reserve


def mount(point: str, kind: str) -> str:
    return f"36 35 98:0 /inside {point} rw,noatime master:1 - {kind} /dev/x rw,errors=continue\n"


def journal_mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mounts: str) -> None:
    listing = tmp_path / "mountinfo"
    listing.write_text(mounts)
    monkeypatch.setattr(local_disk, "MOUNTS", listing)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((local, "wal") for local in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs")),
        *((network, "delete") for network in ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "virtiofs")),
        *((fuse, "delete") for fuse in ("fuse.sshfs", "fuse.rclone", "fuse", "vboxsf", "a-network-of-tomorrow")),
    ],
)
def test_the_write_ahead_log_is_for_local_disks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
) -> None:
    place = (tmp_path / "a place").resolve()
    place.mkdir()
    escaped = str(place).replace(" ", "\\040")
    pretend(monkeypatch, tmp_path, mount("/", "xfs" if mode == "delete" else "nfs4") + mount(escaped, kind))
    filled(place / "clinic.dpnb")
    assert journal_mode(place / "clinic.dpnb") == mode
    with opened(place / "clinic.dpnb") as ledger:
        assert len(ledger.charges()) == 5


def test_of_mounts_the_innermost_and_of_these_the_last_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path.resolve())
    mounts = mount(place, "ext4") + mount(place, "nfs4") + mount("/", "ext4") + mount(place + "/sub", "ext4")
    pretend(monkeypatch, tmp_path, mounts + mount(place + "/clinic", "ext4"))
    assert not local_disk.is_local_disk(place + "/clinic.dpnb")
    assert local_disk.is_local_disk(place + "/sub/clinic.dpnb")
    assert local_disk.is_local_disk(place + "/clinic")


def test_a_link_counts_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path.resolve()
    (place / "net").mkdir()
    (place / "link").symlink_to(place / "net")
    pretend(monkeypatch, tmp_path, mount("/", "ext4") + mount(str(place / "net"), "nfs"))
    assert not local_disk.is_local_disk(str(place / "link" / "clinic.dpnb"))
    assert local_disk.is_local_disk(str(place / "clinic.dpnb"))


def test_a_machine_that_does_not_tell_counts_as_a_network(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_disk, "MOUNTS", path.with_name("missing"))
    filled(path)
    assert journal_mode(path) == "delete"


def test_a_file_with_the_rollback_journal_keeps_it_and_a_log_ends_on_a_network(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, path.parent, mount("/", "ext4"))
    filled(path)
    assert journal_mode(path) == "wal"
    pretend(monkeypatch, path.parent, mount("/", "nfs"))
    with opened(path) as ledger:
        reserve(ledger, "f")
    assert journal_mode(path) == "delete"
    pretend(monkeypatch, path.parent, mount("/", "ext4"))
    with opened(path) as ledger:
        reserve(ledger, "g")
    assert journal_mode(path) == "delete"
