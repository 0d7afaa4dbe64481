"""Every exception of dpnb.

A message says name, rule, given value and remedy.  It may quote the schema, the plan, the budget and what the
caller wrote; it never quotes anything computed from rows.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """A text with every character that does not print escaped, such as those that move a terminal's cursor."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class DpnbError(Exception):
    """Base of every error that dpnb raises on purpose.

    A message may quote what somebody else wrote into a ledger or a schema, so its text goes through `printable`.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidValueError(DpnbError, ValueError):
    """A number or an argument breaks a stated rule."""


class BudgetExceeded(DpnbError):  # noqa: N818  (the public name says what happened)
    """A filter refused a loss; nothing was charged and the session goes on."""


class ConversionError(DpnbError, TypeError):
    """No theorem allows one kind of loss to be counted as another."""


class SchemaError(DpnbError, ValueError):
    """The schema, or a question asked against it, is not one that dpnb can bound."""


class PlanError(DpnbError, ValueError):
    """A question that the query layer cannot ask."""


class UnsupportedError(PlanError, AttributeError):
    """Something that pandas has and a private table has not; the message says what to do instead.

    An `AttributeError` too, so that ``hasattr`` and completion work as everywhere.
    """


class RequestError(DpnbError, ValueError):
    """A preview or release that says too little, too much, or something impossible."""


class MechanismClosed(DpnbError):  # noqa: N818
    """An interactive mechanism was closed, is used up, or lived in a kernel that is gone; nothing was charged."""


class ErrorEstimateUnavailable(DpnbError):  # noqa: N818
    """The error depends on a count that nobody has published; the message names the count to release."""


class StatementError(DpnbError):
    """A person's own statement cannot be made here, or of this; it is the curator's, outside any session."""


class CheckError(DpnbError):
    """A table cannot be checked against its declaration here; only a curator does that, outside any session."""


class LedgerError(DpnbError):
    """A ledger file cannot serve this session."""


class ExecutionError(DpnbError):
    """Something failed after the charge; the charge stands.

    Its text is constant and it carries no cause, no context and no traceback frames that hold rows.
    """


class SchemaWarning(UserWarning):
    """The schema is valid, but some questions that it suggests will be refused."""
