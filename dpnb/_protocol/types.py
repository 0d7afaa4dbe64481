"""Types of fields that several structs use, and the base of all structs."""

from __future__ import annotations

from typing import Annotated

import msgspec

Proportion = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A part of a whole, between 0 and 1."""

Count = Annotated[int, msgspec.Meta(ge=0)]
"""Counts things, or numbers them."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every struct of the protocol.

    The kernel knows all fields that it sends; the browser ignores those that it does not know, so that a newer kernel
    may send more.
    """
