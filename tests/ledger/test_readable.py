"""What is said of a ledger that cannot be read."""

from __future__ import annotations

import pytest

from dpnb.errors import LedgerError
from dpnb.ledger.connection import refuse_unreadable


def test_a_lack_of_memory_is_not_a_damaged_ledger() -> None:
    """Nobody restores a file, and with it an older budget, because an answer was large."""
    with pytest.raises(MemoryError), refuse_unreadable("row 5"):
        raise MemoryError
    with pytest.raises(LedgerError, match="row 5 must be as dpnb wrote it"), refuse_unreadable("row 5"):
        raise KeyError
