"""Refuse a ledger whose content cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dpnb.errors import LedgerError


@contextmanager
def refuse_unreadable(content: str) -> Iterator[None]:
    """Refuse a ledger if the block, which interprets its content, fails in any way.

    Parameters
    ----------
    content : str
        Name of what is read, for the error.

    Raises
    ------
    LedgerError
    """
    try:
        yield
    except LedgerError:
        raise
    except Exception as error:  # noqa: BLE001  (the file is untrusted)
        raise LedgerError(
            f"ledger: {content} must be as dpnb wrote it; reading it raised {type(error).__name__}; restore the file "
            "from a copy that has every charge"
        ) from None
