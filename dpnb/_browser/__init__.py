"""The messages between the kernel and the browser as typed structs: fields, types and ranges.

Here are the types of fields that several structs use, and the base of all structs.  The TypeScript types and guards in
``labextension/src/protocol/`` are generated from the modules by ``python .ci/protocol.py``, with the summary of each
struct and the comment above or after each field; a test fails where they are out of date.  Nothing here imports the
rest of dpnb.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Proportion = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A fraction between 0 and 1."""

NonNegative = Annotated[int, msgspec.Meta(ge=0)]
"""A count, or a number that identifies an item."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every struct of the protocol.

    Unknown fields are errors in the kernel; the browser ignores them, so that a newer kernel may send more.
    """
