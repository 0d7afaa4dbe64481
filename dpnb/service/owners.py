"""Whose a file of the service is: what root creates for another account must belong to that account."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path


def user_name(uid: int) -> str:
    """The name of a user; the number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def is_from(status: os.stat_result, folder: Path) -> bool:
    """Whether a file is of this user or root; for root also of the folder's owner, who could replace it anyway."""
    uid = os.geteuid()
    return status.st_uid in (uid, 0) or (uid == 0 and status.st_uid == os.stat(folder).st_uid)


def give_to_owner(file: int, folder: Path) -> None:
    """Give a file that root has open to the folder's owner; any other user's files are their own.

    The file must have been opened without following links.
    """
    if os.geteuid() != 0:
        return
    of, status = os.stat(folder), os.fstat(file)
    # Never a file with a second name: the folder's owner could have linked one of root's here.
    if status.st_uid == 0 != of.st_uid and stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        os.fchown(file, of.st_uid, of.st_gid)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, all of the owner of the one that exists."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        of = os.stat(one.parent)
        if os.geteuid() == 0 != of.st_uid:
            os.chown(one, of.st_uid, of.st_gid, follow_symlinks=False)
