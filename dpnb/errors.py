"""The exceptions that dpnb raises.

A message states the name, the rule, the given value and the remedy.  It may quote the schema, the plan, the budget and
the caller's arguments, but never anything computed from rows.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape all non-printable characters of a text, for example those that move a terminal's cursor."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class DpnbError(Exception):
    """Base class of all errors that dpnb raises deliberately.

    A message may quote a ledger or a schema that someone else wrote, so `printable` escapes its text.
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidValueError(DpnbError, ValueError):
    """A number or an argument violates a documented rule."""


class BudgetExceeded(DpnbError):  # noqa: N818  (the public name describes the event)
    """The filter refused a loss; nothing was charged and the session remains usable."""


class ConversionError(DpnbError, TypeError):
    """No theorem allows this conversion between kinds of loss."""


class SchemaError(DpnbError, ValueError):
    """The schema is invalid, or gives a query no bounds."""


class PlanError(DpnbError, ValueError):
    """A query that dpnb does not support or cannot bound."""


class UnsupportedError(PlanError, AttributeError):
    """A pandas operation that is not available on a private table; the message names an alternative.

    Also an `AttributeError`, so that ``hasattr`` and tab completion work as usual.
    """


class RequestError(DpnbError, ValueError):
    """A preview or release whose arguments are missing, contradictory or impossible."""


class NotReleasedError(RequestError, AttributeError):
    """A query or a preview is used as a number or a table; the message shows the release.

    Also an `AttributeError`, so that ``hasattr`` and tab completion work as usual.
    """


class AnswerAttributeError(RequestError, AttributeError):
    """An attribute that an answer does not have; the message names what to use instead."""


class ConfirmationRequired(RequestError):  # noqa: N818
    """A release by mouse or magic takes much of what is left and was not confirmed; nothing was charged."""


class MechanismClosed(DpnbError):  # noqa: N818
    """An interactive mechanism is closed, exhausted, or was started in a kernel that has ended; nothing was charged."""


class ErrorEstimateUnavailable(DpnbError):  # noqa: N818
    """The expected error depends on an unknown count; the message names the count to release first."""


class StatementError(DpnbError):
    """A person's statement cannot be made here or from this input; only the curator makes it, outside any session."""


class CheckError(DpnbError):
    """A table cannot be checked against its declaration here; only the curator does that, outside any session."""


class LedgerError(DpnbError):
    """A ledger file cannot be used for this session."""


class ExecutionError(DpnbError):
    """Reading the table or answering a query failed; a charge that was made stands.

    Its text is constant, and it has no cause, no context and no traceback frames that hold rows.
    """


class SchemaWarning(UserWarning):
    """The schema is valid, but some queries that it suggests will be refused."""
