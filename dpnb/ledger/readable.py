"""Refuse a ledger whose content cannot be read."""

from __future__ import annotations

from types import TracebackType

from dpnb.errors import LedgerError


class refuse_unreadable:  # noqa: N801  (a context manager; a generator would take longer than reading a row)
    """Refuse a ledger if the block, which interprets its `content`, fails in any way but for want of memory."""

    __slots__ = ("_content",)

    def __init__(self, content: str) -> None:
        self._content = content

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, LedgerError | MemoryError):  # the file is untrusted
            raise LedgerError(
                f"ledger: {self._content} must be as dpnb wrote it; reading it raised {type(error).__name__}; restore "
                "the file from a copy that has every charge"
            ) from None
