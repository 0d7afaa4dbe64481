"""The files that a version of the table was read from: noted in the ledger, so that changed ones need a new version.

What is noted is a digest of device, inode and time of change.  It is a row of the ledger on a branch of its own.  It
is not a request, so it costs nothing, and no log, odometer or statement shows it.

Where no file can be identified, as for a copy of the table in memory, nothing is checked: then the version is the
curator's word alone.
"""

from __future__ import annotations

from collections.abc import Callable

from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.ledger.charge import TABLE_FILES, digest
from dpnb.ledger.node import UNCOUNTED


class TableFileCheck:
    """The files of one session's tables.

    Parameters
    ----------
    ledger : Ledger
    version : str
        Of the tables.
    now : callable
        Gives the digest of the files as they are now; None if no files can be identified.

    Raises
    ------
    InvalidValueError
        The version was first used with other files, or they have changed.
    """

    def __init__(self, ledger: Ledger, version: str, now: Callable[[], str | None]) -> None:
        self._version, self._now = version, now
        self._kept = now()
        if self._kept is None:
            return
        key = digest(["table_files", version])
        with ledger.transaction():
            row = ledger.by_request_key(key)
            if row is None:
                ledger.reserve(
                    kind=TABLE_FILES,
                    key=key,
                    branch=UNCOUNTED,
                    version=version,
                    question="",
                    loss=GDP(0),
                    launch={"digest": self._kept},
                )
        if row is not None:
            self._refuse((row.launch or {}).get("digest"))

    def refuse_changed(self) -> None:
        """Refuse to go on if the files have changed since the session was made.

        Raises
        ------
        InvalidValueError
        """
        if self._kept is not None:
            self._refuse(self._now())

    def _refuse(self, other: str | None) -> None:
        if other != self._kept:
            raise InvalidValueError(
                f"version: must be a new one once a file of the table has been changed, replaced, copied or moved; "
                f"this ledger first used {self._version!r} with other files; nothing was charged; make the session "
                "with another version="
            )
