"""Whether a file lies on a disk of this machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

LOCAL_FILE_SYSTEMS = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "jfs", "nilfs2", "bcachefs", "reiserfs"}
    | {"tmpfs", "ramfs", "overlay", "aufs", "ntfs", "ntfs3", "fuseblk", "vfat", "exfat", "hfsplus", "apfs"}
)


def is_local_disk(path: str) -> bool:
    """Whether the file system that holds `path` is known to be this machine's own.

    Named are the local ones, since nobody can name every network: what is unknown, or a machine that does not tell
    (all but Linux), counts as a network and costs some speed, no safety.
    """
    return _file_system(path) in LOCAL_FILE_SYSTEMS


def _file_system(path: str) -> str:
    """Type of the file system, or an empty text; of mounts on one place the last covers the others."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    resolved = os.path.realpath(path)
    longest, kind = "", ""
    for mount in mounts:
        place, _, source = mount.partition(" - ")
        point = _unescaped(place.split()[4])
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and source and len(point) >= len(longest):
            longest, kind = point, source.split()[0]
    return kind


def _unescaped(point: str) -> str:
    """Turn the kernel's octal escapes of spaces and the like into themselves."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point)
