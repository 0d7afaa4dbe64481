"""One explanation for every refusal and warning: for the panel, the links below cells, and a terminal."""

from __future__ import annotations

from typing import NamedTuple

from dpnb import errors
from dpnb._browser.snapshot import EXCLUDED_UNITS, ODOMETERS_PAUSED, OUT_OF_DATE


class ErrorExplanation(NamedTuple):
    """An explanation with its id and title."""

    id: str  # target of links: ``#dpnb-explain-<id>``
    title: str
    text: str  # one sentence, which is shown below an error: it is true of every error of its class
    # What the panel shows in addition; below an error there is a link to the panel only if there is more to read.
    more: str = ""

    @property
    def full_text(self) -> str:
        """What the panel shows."""
        return f"{self.text} {self.more}".rstrip()


_ERRORS: dict[type[errors.DpnbError], ErrorExplanation] = {
    errors.BudgetExceeded: ErrorExplanation(
        "budget-exceeded",
        "Budget exceeded",
        "The filter refuses every request with which all answers together would exceed the budget; nothing was "
        "charged, the session continues, and a cheaper query may still fit.",
        "Repeating an earlier request is free, and so is everything that is computed from released answers; .preview() "
        "shows the cost of a request before it is made.",
    ),
    errors.MechanismClosed: ErrorExplanation(
        "mechanism-closed",
        "Interactive mechanism ended",
        "The mechanism was closed, has given all the answers that it was charged for, or drew its hidden noise in a "
        "kernel that has ended; recorded answers remain free, and new answers require a launch under a new name.",
    ),
    errors.ErrorEstimateUnavailable: ErrorExplanation(
        "error-estimate-unavailable",
        "Expected error unavailable",
        "The error of this answer depends on a private quantity that has not been released, such as the number of "
        "rows: release it first, ask the curator for a public number of rows, or specify the budget instead.",
    ),
    errors.NotReleasedError: ErrorExplanation(
        "not-released",
        "Query without an answer",
        "Building a query costs nothing and reads no row; only a release computes an answer, with noise, and charges "
        "the budget, so it must be requested explicitly; .preview() shows its cost and expected error at no cost.",
    ),
    errors.AnswerAttributeError: ErrorExplanation(
        "answer-attribute",
        "Not offered by an answer",
        "An answer offers the operations whose intervals are known or unchanged; .to_pandas() returns the released "
        "estimates and limits as an ordinary table, and computing with these costs nothing.",
    ),
    errors.SessionAttributeError: ErrorExplanation(
        "session-attribute",
        "Not offered by a session",
        "A session opens a table, keeps its budget and lists what was released; the columns are those of its .frame, "
        "and numbers are those of released answers.",
    ),
    errors.ServiceUnavailable: ErrorExplanation(
        "service-unavailable",
        "Service not reached",
        "The table is on the curator's server, which cannot be reached or did not reply; if the message says "
        "that the request may have been charged, repeating the same request takes up that charge and costs "
        "nothing more.",
        "Previews, recorded answers, the log and the gauges remain available. The session reconnects automatically; "
        "python -m dpnb serve starts the service again on the curator's machine.",
    ),
    errors.AccessDenied: ErrorExplanation(
        "access-denied",
        "Access denied",
        "The service does not accept the access token for this; nothing was charged; the curator can issue a new "
        "token, with which dpnb.connect() opens the session again.",
    ),
    errors.ServiceError: ErrorExplanation(
        "service-error",
        "Service failed",
        "The service replied in a way that gives no answer, and does not send the reason, since it might depend on "
        "rows of the table; if the request was charged, repeating the same request takes up that charge.",
        "The log of the service, which only the curator sees, has the details.",
    ),
    errors.ConfirmationRequired: ErrorExplanation(
        "confirmation-required",
        "Large cost",
        "A release by mouse or magic that takes more than 20% of what is left, or another limit that is set with "
        "%config DpnbMagics.confirm_above, must be confirmed, because a charge cannot be undone; nothing was charged.",
    ),
    errors.CostIncreased: ErrorExplanation(
        "cost-increased",
        "More expensive than displayed",
        "Another kernel or analyst released or spent something after the cost was computed, so that the release would "
        "now cost more than was displayed; nothing was charged, and the displayed costs are now up to date.",
    ),
    errors.ChargesStopped: ErrorExplanation(
        "charges-stopped",
        "Stopped by the curator",
        "The curator has frozen the table, or revoked this part of its budget, so that queries with a cost are refused "
        "until the curator allows them again; nothing was charged.",
        "Previews, recorded answers, the log and the gauges remain available at no cost.",
    ),
    errors.ExecutionStopped: ErrorExplanation(
        "execution-stopped",
        "Not executed again",
        "The service ended while the request ran, or the curator ended it; the message says what was charged, which "
        "stays charged; the request is not executed again until the curator lets it run once more.",
        "Other requests, previews, recorded answers, the log and the gauges remain available.",
    ),
    errors.StorageExceeded: ErrorExplanation(
        "storage-exceeded",
        "Stored too much",
        "The service limits how much one analyst stores in its ledger, with plans and answers; nothing was charged; a "
        "query with fewer groups or statistics may have room, and the curator can raise the limit.",
        "Previews, recorded answers, the log and the gauges remain available at no cost.",
    ),
    errors.RequestError: ErrorExplanation(
        "request",
        "Invalid request",
        "The request is incomplete, contradictory or impossible; the message says what to write instead; nothing was "
        "charged.",
    ),
    errors.UnsupportedError: ErrorExplanation(
        "unsupported",
        "Not offered by a private table",
        "A private table offers its declared columns, and only operations that can be answered with noise; the message "
        "names the nearest alternative.",
        "Operations of pandas are not offered if they show rows (.head(), iteration), depend on other rows or their "
        "order (.shift(), .rank()), or run Python on the values of rows (.apply() with an if). The cheat sheet in the "
        "documentation lists what pandas users type and what it does in dpnb.",
    ),
    errors.PlanError: ErrorExplanation(
        "plan",
        "Unsupported query",
        "The query was refused because of how it is written and of what the schema declares, without reading a row; "
        "nothing was charged.",
        "A query is accepted if the schema bounds how much one privacy unit can change its answer: then the noise can "
        "be calibrated. So sums and means need numbers with declared bounds, groups need public keys, and a quotient "
        "needs a divisor that is never 0. session.schema shows what is declared; .clip(), dpnb.cut() and "
        ".astype(float) give an expression other bounds or keys.",
    ),
    errors.SchemaError: ErrorExplanation(
        "schema",
        "Schema",
        "The curator's schema declares what is public about each column, and the guarantee depends on it: undeclared "
        "columns cannot be queried.",
    ),
    errors.InvalidValueError: ErrorExplanation(
        "invalid-value",
        "Argument not valid",
        "An argument, or a file that it names, violates the rule that the message states; nothing was charged.",
    ),
    errors.ConversionError: ErrorExplanation(
        "conversion",
        "No theorem for this conversion",
        "One kind of privacy loss may be converted to another only where a theorem gives the resulting loss.",
    ),
    errors.StatementError: ErrorExplanation(
        "statement",
        "Statement for one person",
        "What one person has been charged is for that person alone, so the curator makes the statement outside "
        "notebooks, from a ledger with individual accounting, for a person in the table; nothing was charged.",
    ),
    errors.CheckError: ErrorExplanation(
        "check",
        "Check of a table",
        "The result of a check is computed from the rows without noise, so the curator runs it outside notebooks, "
        "with a declaration and a table that can be read; nothing was charged.",
    ),
    errors.StorageFull: ErrorExplanation(
        "storage-full",
        "Disk full",
        "The disk of the ledger is full or fails; the message says whether anything was charged; when there is room, "
        "repeating the same request is safe, since it is charged once.",
    ),
    errors.LedgerReplaced: ErrorExplanation(
        "ledger-replaced",
        "Another ledger",
        "The service's ledger does not contain the rows that this session has received, perhaps since the curator "
        "restored an older copy; nothing was charged; connect again, and tell the curator.",
    ),
    errors.LedgerError: ErrorExplanation(
        "ledger",
        "Ledger",
        "The ledger is the only record of the budget spent: if it cannot be read or written, belongs to another "
        "guarantee or was altered, the spending is unknown, so the session does not continue without it.",
    ),
    errors.ExecutionError: ErrorExplanation(
        "execution",
        "Reading failed",
        "A query is charged before rows are read, so its charge remains although there is no answer, and repeating the "
        "request costs nothing more; opening a table costs nothing.",
    ),
    errors.DpnbError: ErrorExplanation(
        "error", "Refused", "dpnb refused this deliberately; the message gives the reason."
    ),
}

_WARNINGS = [
    ErrorExplanation(
        "rehearsal",
        "Rehearsal",
        "This session runs on mock data: its answers contain no information about the real table, and none of the "
        "real budget is spent.",
    ),
    ErrorExplanation(
        "not-private",
        "Not private",
        "The noise of this session is a test sequence that anyone can reproduce and subtract: it protects no unit and "
        "is for tests only.",
    ),
    ErrorExplanation(
        "no-budget",
        "No budget",
        "The curator declared no budget: no query is refused for its cost, so nothing limits what all answers together "
        "may show about one privacy unit; the odometers report the privacy loss so far.",
        "An analyst cannot set a budget or remove one, except by giving a limited part to delegate().",
    ),
    ErrorExplanation(
        "unknown",
        "Unknown",
        "The noise is too large for an estimate, or the statistic is not defined: use more budget, or larger groups.",
    ),
    ErrorExplanation(
        "outside",
        "Estimate outside its noise interval",
        "Noise can move an estimate to an impossible value, for example a count below 0; the interval is clipped to "
        "the possible values, and the estimate is not, so that averages of many estimates stay unbiased.",
    ),
    ErrorExplanation(
        "collapsed",
        "Noise interval outside the possible values",
        "The noise moved the whole interval outside the possible values, for example below 0 for a count, which "
        "happens to few intervals; the nearest possible value is displayed instead, and the exact value is probably "
        "close to it, but may differ.",
    ),
    ErrorExplanation(
        "one-value",
        "Noise interval of one value",
        "The noise is small compared with the distance between the possible values, so at this confidence no other "
        "value is left.",
    ),
    ErrorExplanation(
        "interval",
        "Noise interval",
        "The interval covers the noise with the stated confidence, so it is about this table; it does not cover the "
        "sampling of rows from a population, the clamping of values to the schema's bounds, or rows beyond the "
        "contribution bounds of a unit.",
    ),
    ErrorExplanation(
        "at-bound",
        "At the declared bound",
        "A value beyond the declared bounds counts as the nearer bound, so a largest or smallest value at a bound says "
        "only that there are values at it or beyond: how far beyond, this table does not answer.",
        "If wider bounds are plausible, ask the curator for them.",
    ),
    ErrorExplanation(
        "clear-of-noise",
        "Clear of the noise",
        "A largest or smallest value is that of a rank which is clear of the noise, so more extreme ones may exist in "
        "the last rows; their number is a bound at the confidence of the interval, computed from the noise alone, and "
        "the same whether or not there are such rows.",
        "Refine the answer, or ask for a quantile such as .quantile(0.99), which needs no last row.",
    ),
    ErrorExplanation(
        "maybe-empty",
        "Every group may be empty",
        "The intervals allow that no row counts, because of much noise, or because the table writes the values of a "
        "column in another way than the declaration, for example 0 and 1 for female and male: such values do not "
        "count, and no query may show that.",
        "The curator's python -m dpnb check reads the rows and says which values match no category.",
    ),
    ErrorExplanation(
        "not-counted",
        "Rows that are not counted",
        "So that one privacy unit cannot change an answer by much, only as many of its rows count as the curator "
        "declared, or as few as the query asks for; where a unit has more, the answer is about fewer rows than the "
        "table has, and how many fewer is private.",
        "Which rows count does not depend on an answer: they are chosen by a hash, the same ones in every query. For "
        "their number no interval allows, so a count or a sum may be too small. A condition on a missing value is "
        "neither true nor false, so its row does not count where pandas counts it; .preview() shows how to count it.",
    ),
    ErrorExplanation(
        "named",
        "Noise intervals of discovered groups",
        "A group is discovered because its noisy number of units reached a threshold, so noise that raised the number "
        "is more likely than noise that lowered it; the intervals account for this: for every discovered group, "
        "however small, the interval covers with the stated confidence, and the estimate is as often too high as too "
        "low.",
    ),
    ErrorExplanation(
        "time-uniform",
        "Odometer, time-uniform",
        "The bound is valid at every moment at once, also at a moment chosen because of an answer; choose one such "
        "odometer before the first answer.",
    ),
    ErrorExplanation(
        ODOMETERS_PAUSED,
        "Stopped odometers",
        "The time-uniform odometers add mu squared or rho; a sub-session whose budget is a Rényi loss of one order "
        "implies neither, so from its launch on only the accumulator bounds everything so far.",
    ),
    ErrorExplanation(
        "interleaving",
        "Concurrent mechanisms",
        "Interactive mechanisms may be queried concurrently in any order because each is charged before it answers, "
        "under a filter for which this is proved, as for all that dpnb offers.",
    ),
    ErrorExplanation(
        OUT_OF_DATE,
        "Out of date",
        "The table and its ledger are on the curator's server, which cannot be reached at the moment: the figures are "
        "those of the last connection, and charges that were made since then, also by other notebooks of yours, are "
        "not included.",
        "The session reconnects automatically, and then shows all charges. Previews and recorded answers remain "
        "available; a release is sent to the server, which checks it against the current budget. Nothing that was "
        "charged is lost: the same request returns its answer at no further cost.",
    ),
    ErrorExplanation(
        EXCLUDED_UNITS,
        "Which units take part",
        "Each privacy unit has its own budget and is charged only for the queries that use its data; a unit whose "
        "remaining budget is too small is excluded from a query or clipped; which units these are, and how many, is "
        "private and never shown, so an answer describes the units that took part, and its interval covers the noise, "
        "not the exclusion.",
    ),
    ErrorExplanation(
        "accumulator",
        "Odometer, accumulator",
        "The odometer states that all answers so far are within every budget of at least this bound that was fixed "
        "in advance; it states nothing about a moment chosen because of the answers.",
    ),
]

EXPLANATIONS: tuple[ErrorExplanation, ...] = (*_ERRORS.values(), *_WARNINGS)
"""All explanations, refusals first."""


def explanation_for(error: BaseException) -> ErrorExplanation:
    """The explanation of an error: that of its class, or of the nearest base class."""
    return next((_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS), _ERRORS[errors.DpnbError])
