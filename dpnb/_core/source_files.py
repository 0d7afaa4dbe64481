"""The files that a version of the table was read from, recorded in the ledger so that changed files need a new version.

The record is a digest of device, inode and time of change, in a row of the ledger on a separate node.  It is not a
request, so it costs nothing, and no log, odometer or statement shows it.

If no file can be identified, as for a table in memory, nothing is checked, and the version is trusted.
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
        The list of charges.
    version : str
        Version of the tables.
    current_digest : callable
        Returns the current digest of the files; None if no files can be identified.

    Raises
    ------
    InvalidValueError
        If the version was first used with other files, or the files have changed.
    """

    def __init__(self, ledger: Ledger, version: str, current_digest: Callable[[], str | None]) -> None:
        self._version, self._current_digest = version, current_digest
        self._digest = current_digest()
        if self._digest is None:
            return
        key = digest(["table_files", version])
        with ledger.transaction():
            row = ledger.by_request_key(key)
            if row is None:
                ledger.reserve(
                    kind=TABLE_FILES,
                    request_key=key,
                    node=UNCOUNTED,
                    table_version=version,
                    query_key="",
                    loss=GDP(0),
                    launch={"digest": self._digest},
                )
        if row is not None:
            self._refuse((row.launch or {}).get("digest"))

    def refuse_changed(self) -> None:
        """Refuse to go on if the files have changed since the session was created.

        Raises
        ------
        InvalidValueError
        """
        if self._digest is not None:
            self._refuse(self._current_digest())

    def _refuse(self, other: str | None) -> None:
        if other != self._digest:
            raise InvalidValueError(
                f"version: must be changed after a file of the table was changed, replaced, copied or moved; "
                f"this ledger first used {self._version!r} with other files; nothing was charged; create the session "
                "with another version="
            )
