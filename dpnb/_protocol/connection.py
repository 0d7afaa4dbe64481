"""The connection of a session to the service that has its table, as the browser shows it."""

from __future__ import annotations

from typing import Final

from dpnb._protocol.types import Record

OUT_OF_DATE: Final = "out-of-date"
"""Id of the explanation of a `connection` that is not current."""


class ConnectionSnapshot(Record, frozen=True):
    """The connection of a session to the service that has its table."""

    where: str  # Where the table is, in words, for example "on the curator's server, https://dp.example.org".
    # Whether the figures of the session include everything that the service has charged, as far as is known.
    is_current: bool
    text: str  # The state in words: "up to date", or since when and why it is not, and what happens next.
