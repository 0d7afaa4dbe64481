"""An analyst's process under another user account: ``python analyst.py USER SOCKET TOKEN FILE...``.

It prints which files it can open and what its session answers.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import sys
from contextlib import suppress
from pathlib import Path

import dpnb

SECRET = re.compile(rb"XAVIER[-]7Q")
"""A text of every row; the pattern does not match itself."""


def rehearse(socket: str, token: str) -> None:
    """Load every module that a release needs: the other user may not be able to read this installation."""
    session = dpnb.Session.rehearse(
        name="people", budget=dpnb.Budget.gdp(1), schema={"age": dpnb.Bounded(0, 100, integer=True)}
    )
    str(session.frame["age"].mean().release(mu=0.1))
    remote = dpnb.connect(f"unix://{socket}", table="people", token=token)
    str(remote.frame["age"].mean().preview(mu=0.1))
    remote.close()


def can_open(path: str) -> bool:
    """Whether this process can read a file."""
    try:
        return bool(Path(path).read_bytes())
    except PermissionError:
        return False


def is_in_memory(pattern: re.Pattern[bytes]) -> bool:
    """Whether some bytes are anywhere in the memory of this process."""
    with open("/proc/self/maps", encoding="ascii") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            area, mode, *_ = line.split()
            if mode.startswith("rw"):
                start, end = (int(one, 16) for one in area.split("-"))
                memory.seek(start)
                with suppress(OSError, OverflowError):  # an area of the kernel's
                    if pattern.search(memory.read(end - start)):
                        return True
    return False


def main() -> None:
    """Report what the analyst's process can do."""
    user, socket, token, *paths = sys.argv[1:]
    rehearse(socket, token)
    if user != "":
        account = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
    session = dpnb.connect(f"unix://{socket}", table="people", token=token)
    answer = session.frame["age"].mean().release(mu=0.5)
    value = float(answer)
    has_rows = None if user else is_in_memory(SECRET)  # another user's process cannot read its own memory
    opened = [path for path in paths if can_open(path)]
    report = {"user": os.getuid(), "opened": opened, "value": value, "has_rows": has_rows}
    if not user:
        held = [Path(path).read_bytes() for path in paths]  # the control: a process that holds the table
        report["holds_rows"] = bool(held) and is_in_memory(SECRET)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
