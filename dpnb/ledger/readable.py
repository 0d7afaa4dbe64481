"""Either what a ledger holds can be read, or the ledger is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpnb.errors import LedgerError


@contextmanager
def refuse_unreadable(what: str) -> Iterator[None]:
    """Refuse a ledger if the block, which interprets what it holds, fails in any way.

    Parameters
    ----------
    what : str
        What is read, for the error.

    Raises
    ------
    LedgerError
    """
    try:
        yield
    except LedgerError:
        raise
    except Exception as error:  # noqa: BLE001  (anybody may have written the file)
        raise LedgerError(
            f"ledger: {what} must read as dpnb wrote it, got {type(error).__name__} while reading it; restore the file "
            "from a copy that has every charge"
        ) from None
