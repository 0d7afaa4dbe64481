"""Limits of a request, so that none takes much time or memory before it is understood, and the error beyond them."""

from dpnb.errors import DpnbError

# --- the error of a message that cannot be read -----------------------------------------------------------------------


class WireError(DpnbError):
    """A message is not of the form that both sides agreed on, or exceeds a limit.  Nothing was charged."""


# --- limits of a request ----------------------------------------------------------------------------------------------


MAX_BODY = 2**20
"""Bytes of a request."""

MAX_DEPTH = 150
"""Levels of nested lists and objects: an expression has at most `dpnb._plan.expressions.nodes.MAX_DEPTH`."""

MAX_VALUES = 250_000
"""Values, lists and objects of a request."""

MAX_LIST = 100_000
"""Elements of a list, and fields of an object."""

MAX_TEXT = 10_000
"""Characters of any text."""

MAX_NAME = 1000
"""Characters of the name of a launch, and of a cell id."""

MAX_ID = 100
"""Characters of a request id."""

MAX_SHOWN = 60
"""Characters of a field's path that an error repeats."""

MAX_INTEGER = 2**63 - 1
"""Largest absolute value of a whole number."""

MAX_QUERIES = 256
"""Queries of a batch."""

MAX_REQUESTED = 20
"""Queries of a request for budget."""

MAX_WHY = 500
"""Characters of a reason."""

MAX_PENDING = 10_000
"""Rows without an answer about which a request inquires."""
