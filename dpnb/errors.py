"""The exceptions that dpnb raises.

A message states the name, the rule, the given value and the remedy.  It may quote the schema, the plan, the budget and
the caller's arguments, but never anything computed from rows.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """Escape all non-printable characters of a text, for example those that move a terminal's cursor."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class DpnbError(Exception):
    """Base class of all errors that dpnb raises deliberately.

    A message may quote a ledger or a schema that someone else wrote, so non-printable characters in it are escaped.

    Examples
    --------
    >>> try:
    ...     df["hight"]
    ... except dpnb.errors.DpnbError as error:
    ...     print(type(error).__name__)
    PlanError
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class InvalidValueError(DpnbError, ValueError):
    """A number or an argument violates a documented rule.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     dpnb.Budget(epsilon=0, delta=1e-6)
    ... except dpnb.errors.InvalidValueError as error:
    ...     print(textwrap.fill(str(error), 66))
    epsilon must be greater than 0, got 0; give a positive number
    """


class MissingArgument(InvalidValueError, TypeError):  # noqa: N818
    """An argument that is required is missing; the message says what it is, with a line to copy.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     dpnb.Budget(epsilon=1)
    ... except dpnb.errors.MissingArgument as error:
    ...     print(textwrap.fill(str(error), 66))
    Budget: delta is missing: the probability with which the guarantee
    may fail; choose it far below one over the number of persons;
    write for example dpnb.Budget(epsilon=1.0, delta=1e-6)
    """


class BudgetExceeded(DpnbError):  # noqa: N818  (the public name describes the event)
    """The filter refused a loss; nothing was charged and the session remains usable.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     df.count().release(mu=5)
    ... except dpnb.errors.BudgetExceeded as error:
    ...     print(textwrap.fill(str(error), 66))
    count of rows: requested more than 1000% of the budget (mu=5), and
    100.0% is left; the largest that fits is mu=0.4462, or share=1,
    for ± 9.3 rows at 95% (noise); the sum of mu^2 must stay within
    0.4462^2, and the sum of the losses' deltas within 1e-7; nothing
    was charged and the session continues
    """


class ConversionError(DpnbError, TypeError):
    """No theorem allows this conversion between kinds of loss.

    Examples
    --------
    >>> import textwrap
    >>> from dpnb.accounting import GDP, PureDP, convert
    >>> try:
    ...     convert(GDP(mu=1), PureDP)
    ... except dpnb.errors.ConversionError as error:
    ...     print(textwrap.fill(str(error), 66))
    loss: no theorem converts GDP(mu=1.0) to PureDP; use a filter or
    odometer that accepts it unconverted
    """


class SchemaError(DpnbError, ValueError):
    """The schema is invalid, or gives a query no bounds.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     dpnb.Bounded(10, 0)
    ... except dpnb.errors.SchemaError as error:
    ...     print(textwrap.fill(str(error), 66))
    Bounded: low must be below high; got low=10.0, high=0.0; give two
    different numbers in ascending order
    """


class PlanError(DpnbError, ValueError):
    """A query that dpnb does not support or cannot bound.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     df["age"] / df["cost"]
    ... except dpnb.errors.PlanError as error:
    ...     print(textwrap.fill(str(error), 66))
    age / cost: cost can be 0, so nothing bounds the quotient; .clip()
    it away from 0 first, as in df['age'] / df['cost'].clip(lower=1)
    """


class UnsupportedError(PlanError, AttributeError):
    """A pandas operation that is not available on a private table; the message names an alternative.

    Also an `AttributeError`, so that ``hasattr`` and tab completion work as usual.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     df.iloc
    ... except dpnb.errors.UnsupportedError as error:
    ...     print(textwrap.fill(str(error), 66))
    .iloc of private table: would show rows, which are never shown;
    release a summary instead, such as df['cost'].mean(),
    df['cost'].quantile([0.1, 0.9]) or df['plan'].value_counts()
    """


class RequestError(DpnbError, ValueError):
    """A preview or release whose arguments are missing, contradictory or impossible.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     df.count().release()
    ... except dpnb.errors.RequestError as error:
    ...     print(textwrap.fill(str(error), 66))
    release: give exactly one of mu=, rho=, epsilon=, share=, within=;
    got none; write for example .release(share=0.05) for 5% of what is
    left
    """


class NotReleasedError(RequestError, AttributeError):
    """A query or a preview is used as a number or a table; the message shows the release.

    Also an `AttributeError`, so that ``hasattr`` and tab completion work as usual.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     df.count() + 1
    ... except dpnb.errors.NotReleasedError as error:
    ...     print(textwrap.fill(str(error), 66))
    count of rows: this is a query, not a number; .release(...)
    answers it, for example .release(share=0.01)
    """


class AnswerAttributeError(RequestError, AttributeError):
    """An attribute that an answer does not have; the message names what to use instead.

    Examples
    --------
    >>> import textwrap
    >>> answer = df.count().release(mu=0.1)
    >>> try:
    ...     answer.kurtosis
    ... except dpnb.errors.AnswerAttributeError as error:
    ...     print(textwrap.fill(str(error), 66))
    .kurtosis of count of rows: is not offered by an answer;
    .to_pandas() gives a pandas DataFrame with the columns estimate,
    low, high, noise_scale, population_low, population_high, for
    example .to_pandas()['estimate'].kurtosis(...)
    """


class SessionAttributeError(RequestError, AttributeError):
    """An attribute that a session does not have; the message names what has what was probably looked for.

    Examples
    --------
    >>> try:
    ...     session.remaining
    ... except dpnb.errors.SessionAttributeError as error:
    ...     print(error)
    .remaining of a session: is not offered; .headroom is the fraction of the budget that is left
    """


class ConfirmationRequired(RequestError):  # noqa: N818
    """A release by mouse or magic takes much of what is left and was not confirmed; nothing was charged.

    ``%%dpnb share=0.5`` raises it, and ``%%dpnb share=0.5 --yes`` confirms; releases in code are never interrupted.
    """


class CostIncreased(RequestError):  # noqa: N818
    """A release by mouse would cost more than was displayed, as the budget changed meanwhile; nothing was charged."""


class ChargesStopped(RequestError):  # noqa: N818
    """The curator has frozen the table, or revoked this part of its budget; nothing was charged.

    Answers that were recorded before stay free.
    """


class ExecutionStopped(RequestError):  # noqa: N818
    """The service ended while the request ran, or the curator ended it: only the curator lets it run again.

    The message says what was charged, which stays charged.
    """


class StorageExceeded(RequestError):  # noqa: N818
    """The rows of a request would take more of the service's ledger than the curator lets an analyst use.

    Nothing was charged.  Answers that were recorded before stay free.
    """


class MechanismClosed(DpnbError):  # noqa: N818
    """An interactive mechanism is closed, exhausted, or was started in a kernel that has ended; nothing was charged.

    Examples
    --------
    >>> import textwrap
    >>> total = session.noise_reduction(df["cost"].sum(), max_mu=0.3)
    >>> total.close()
    >>> try:
    ...     total.step()
    ... except dpnb.errors.MechanismClosed as error:
    ...     print(textwrap.fill(str(error), 66))
    sum of cost: this noise reduction is closed; nothing was charged;
    recorded answers stay free; launch another one under a new name
    """


class ErrorEstimateUnavailable(DpnbError):  # noqa: N818
    """The expected error depends on an unknown count; the message names the count to release first.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     df[df["age"] > 65]["cost"].mean().release(within=10)
    ... except dpnb.errors.ErrorEstimateUnavailable as error:
    ...     print(textwrap.fill(str(error), 66))
    within: the error of the mean of cost where age > 65 depends on
    how many rows there are, which no released count shows clearly
    enough; release the count of cost where age > 65 first, by
    session.frame[session.frame['age'] >
    65]['cost'].count().release(share=0.01), until its noise scale is
    at most 1/30 of it, or choose the budget instead, as in
    .release(share=0.05)
    """


class StatementError(DpnbError):
    """A person's statement cannot be made here or from this input; only the curator makes it, outside any session."""


class CheckError(DpnbError):
    """A table cannot be checked against its declaration here; only the curator does that, outside any session."""


class LedgerError(DpnbError):
    """A ledger file cannot be used for this session.

    Examples
    --------
    >>> import textwrap
    >>> import pandas as pd
    >>> try:
    ...     dpnb.Session(
    ...         pd.DataFrame({"age": [40, 50]}),
    ...         name="people",
    ...         budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...         schema={"age": dpnb.Bounded(0, 100)},
    ...         ledger="missing-folder/people.dpnb",
    ...     )
    ... except dpnb.errors.LedgerError as error:
    ...     print(textwrap.fill(str(error).partition(": ")[2], 66))
    cannot be used (unable to open database file); give the path of a
    dpnb ledger, or of a file that does not exist yet in a folder you
    can write to
    """


class StorageFull(LedgerError):  # noqa: N818
    """A ledger could not be written, since its disk is full or fails; the message says whether anything was charged.

    Repeating the request when there is room is safe: it is charged once.
    """


class LedgerReplaced(LedgerError):  # noqa: N818
    """The ledger of a service does not contain the rows that this session has received; nothing was charged.

    The curator may have restored it from an older copy.  The session can no longer be used; connect again.
    """


class ExecutionError(DpnbError):
    """Reading the table or answering a query failed; a charge that was made stands.

    Its text is constant, and it has no cause, no context and no traceback frames that hold rows.
    """


class ServiceUnavailable(DpnbError):  # noqa: N818
    """The curator's service cannot be reached, or the connection was lost before its reply arrived.

    A request that was sent may have been charged.  Repeating it with the same arguments takes up the same charge: it is
    not charged twice.

    Examples
    --------
    >>> import textwrap
    >>> try:
    ...     dpnb.connect("http://localhost:9", token="example")
    ... except dpnb.errors.ServiceUnavailable as error:
    ...     print(textwrap.fill(str(error), 66))
    service http://localhost:9: cannot be reached (Connection
    refused); nothing was charged; check the address and whether the
    service is running
    """


class AccessDenied(DpnbError):  # noqa: N818
    """The curator's service refused the access token, or the token gives no access to a table; nothing was charged.

    On a JupyterHub also: the Hub makes no token for the service, since the user has no role with its scope.
    """


class ServiceError(DpnbError):
    """The curator's service failed, or replied in a way that this version of dpnb does not support.

    If the service failed after it charged a request, the charge stands; repeating the request with the same arguments
    takes up the same charge.
    """


class RefinementWarning(UserWarning):
    """A refinement costs budget and is not expected to narrow an interval; raised before the charge.

    Examples
    --------
    >>> import warnings
    >>> answer = df["age"].mean().release(mu=0.3)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     finer = answer.refine(mu=0.301)
    >>> caught[0].category.__name__
    'RefinementWarning'
    """


class SchemaWarning(UserWarning):
    """The schema is valid, but some queries that it suggests will be refused, or may mean something else.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     texts = dpnb.Session.rehearse(
    ...         name="texts", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"note": dpnb.Text()}
    ...     )
    >>> caught[0].category.__name__
    'SchemaWarning'
    """
