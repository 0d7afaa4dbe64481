"""The error of a message that cannot be read."""

from __future__ import annotations

from dpnb.errors import DpnbError


class WireError(DpnbError):
    """A message is not of the form that both sides agreed on, or exceeds a limit.  Nothing was charged."""
