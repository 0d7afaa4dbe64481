"""The files that a version of the table was read from, recorded in the ledger so that changed files need a new version.

The record is a digest of device, inode and time of change, in a row of the ledger on a separate node.  It is not a
request, so it costs nothing, and no log, odometer or statement shows it.

If no file can be identified, as for a table in memory, nothing is checked, and the version is trusted.  For a file in
which units are identified by texts the record says that.
"""

from __future__ import annotations

from collections.abc import Callable

from dpnb._backends.protocol import FIELDS_AS_TEXTS
from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.ledger.charge import DECLARED, TABLE_FILES, digest
from dpnb.ledger.origin import UNCOUNTED


def was_read_as_texts(ledger: Ledger, version: str) -> bool:
    """Whether the sessions of a version read what identifies a person as texts."""
    row = ledger.by_key(UNCOUNTED, version, KEY)
    return row is not None and (row.launch or {}).get("digest") == FIELDS_AS_TEXTS


KEY = digest(["table_files"])


def _is_used(ledger: Ledger, version: str) -> bool:
    return any(charge.table_version == version and charge.kind not in DECLARED for charge in ledger.charges())


class TableFileCheck:
    """The files of one session's tables, refused if they are not those that the version was first used with.

    Also refused if the version was used with a table in memory and now is with a file that is read so, or the reverse,
    so that other rows of a unit may have counted.  `current_digest` returns None if no files can be identified;
    `digest` is its first value.
    """

    def __init__(self, ledger: Ledger, version: str, current_digest: Callable[[], str | None]) -> None:
        self._version, self._current_digest = version, current_digest
        self.digest = current_digest()
        if self.digest is None:
            if was_read_as_texts(ledger, version):
                raise InvalidValueError(
                    f"version: must be changed, since this ledger used {version!r} with a file in which texts "
                    "identify persons: other rows of a person may count in a table that was read otherwise; nothing "
                    "was charged; create the session with another version="
                )
            return
        with ledger.transaction():
            row = ledger.by_key(UNCOUNTED, version, KEY)
            was_read_otherwise = row is None and self.digest == FIELDS_AS_TEXTS and _is_used(ledger, version)
            if row is None and not was_read_otherwise:
                ledger.note(TABLE_FILES, version, {"digest": self.digest}, KEY)
        if was_read_otherwise:
            raise InvalidValueError(
                f"version: must be changed, since this ledger used {version!r} with a table in memory, not with a "
                "file in which dpnb identifies persons by texts: other rows of a person may count now; nothing was "
                "charged; create the session with another version="
            )
        if row is not None:
            self._refuse((row.launch or {}).get("digest"))

    def refuse_changed(self) -> None:
        """Refuse to go on if the files have changed since the session was created; only if there are any."""
        self._refuse(self._current_digest())

    def _refuse(self, other: str | None) -> None:
        if other != self.digest:
            raise InvalidValueError(
                f"version: must be changed after a file of the table was changed, replaced, copied or moved; "
                f"this ledger first used {self._version!r} with other files; nothing was charged; create the session "
                "with another version="
            )
