"""What a ledger's rows hold is read, or the ledger is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpnb.errors import LedgerError


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Refuse a ledger if the block, which makes something of what it holds, fails in whatever way.

    Parameters
    ----------
    what : str
        Is read.

    Raises
    ------
    LedgerError
    """
    try:
        yield
    except LedgerError:
        raise
    except Exception as error:  # noqa: BLE001  (of a file that anybody may have written nothing can be taken for granted)
        raise LedgerError(
            f"ledger: {what} must read as dpnb wrote it, got {type(error).__name__} while reading it; restore the file "
            "from a copy that has every charge"
        ) from None
