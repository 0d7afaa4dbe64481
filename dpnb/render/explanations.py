"""One sentence for every refusal and warning: for the panel, the links below cells, and a terminal."""

from __future__ import annotations

from typing import NamedTuple

from dpnb import errors
from dpnb._protocol.snapshot import EXCLUDED_UNITS, ODOMETERS_PAUSED


class ErrorExplanation(NamedTuple):
    """A sentence and where it belongs.

    Parameters
    ----------
    id : str
        Links name it: ``#dpnb-explain-<id>``.
    title : str
    text : str
    """

    id: str
    title: str
    text: str


_ERRORS: dict[type[errors.DpnbError], ErrorExplanation] = {
    errors.BudgetExceeded: ErrorExplanation(
        "budget-exceeded",
        "Budget exceeded",
        "The filter refuses whatever would take all answers together past the promise; nothing was charged, the "
        "session goes on, and a cheaper question may still fit.",
    ),
    errors.MechanismClosed: ErrorExplanation(
        "mechanism-closed",
        "Interactive mechanism at its end",
        "It was closed, has given all the answers that were paid for, or drew its hidden noise in a kernel that is "
        "gone; what it has answered stays free, and anything new needs a new launch under a new name.",
    ),
    errors.ErrorEstimateUnavailable: ErrorExplanation(
        "error-estimate-unavailable",
        "Error not known beforehand",
        "How far off this answer will be depends on something private that nobody has released yet, such as how many "
        "rows there are: release that first, ask the curator for a public number of rows, or choose the budget itself.",
    ),
    errors.RequestError: ErrorExplanation(
        "request",
        "Request not understood",
        "What was asked says too little, too much or something impossible, and the message says what to write "
        "instead; this request cost nothing.",
    ),
    errors.UnsupportedError: ErrorExplanation(
        "unsupported",
        "Not for a private table",
        "pandas can do this because it shows rows or runs your own code on them; a private table only gives noisy "
        "figures whose sensitivity is known, and the message names the way to ask.",
    ),
    errors.PlanError: ErrorExplanation(
        "plan",
        "Question that cannot be asked",
        "Noise can only be scaled to a question if the schema bounds what one privacy unit can change in its answer; "
        "this request cost nothing.",
    ),
    errors.SchemaError: ErrorExplanation(
        "schema",
        "Schema",
        "The curator's schema says what is public about each column, and everything rests on it: what it does not "
        "declare cannot be asked about.",
    ),
    errors.InvalidValueError: ErrorExplanation(
        "invalid-value",
        "Value out of its range",
        "A number or an argument breaks the rule that the message states; this request cost nothing.",
    ),
    errors.ConversionError: ErrorExplanation(
        "conversion",
        "No theorem for this conversion",
        "One kind of privacy loss may be counted as another only where a theorem says how much it is then.",
    ),
    errors.StatementError: ErrorExplanation(
        "statement",
        "A person's own statement",
        "What one person has spent is for that person alone, so the curator makes it outside notebooks, from a ledger "
        "that accounts for each by themselves, for somebody who is in the table; nothing was charged.",
    ),
    errors.CheckError: ErrorExplanation(
        "check",
        "Check of a table",
        "What a check shows is computed from the rows without noise, so the curator runs it outside notebooks, with a "
        "declaration and a table that can be read; nothing was charged.",
    ),
    errors.LedgerError: ErrorExplanation(
        "ledger",
        "Ledger",
        "The ledger is the promise's memory: where it cannot be read or written, belongs to another promise or was "
        "altered, nobody can say what was spent, so the session does not go on without it.",
    ),
    errors.ExecutionError: ErrorExplanation(
        "execution",
        "Failed after the charge",
        "The charge is written before rows are read, so it stands although no answer came; asking the same again "
        "takes the same charge up and costs nothing more.",
    ),
    errors.DpnbError: ErrorExplanation("error", "Refused", "dpnb refused this on purpose; the message says why."),
}

_WARNINGS = [
    ErrorExplanation(
        "rehearsal",
        "Rehearsal",
        "This session runs on invented data: its answers say nothing about the real table, and nothing of the real "
        "budget is spent.",
    ),
    ErrorExplanation(
        "not-private",
        "Not private",
        "This session's noise repeats a test sequence that anybody can subtract: it protects nobody and is for tests "
        "alone.",
    ),
    ErrorExplanation(
        "unknown",
        "Unknown",
        "The noise was larger than what there was to be seen, or the figure is not defined: ask with more budget, or "
        "about larger groups.",
    ),
    ErrorExplanation(
        "outside",
        "Estimate outside its interval",
        "Noise can push an estimate to where the truth cannot be, a count below 0 for example; the interval is cut "
        "to what is possible, and the estimate is left as it came, so that averages of many stay unbiased.",
    ),
    ErrorExplanation(
        "interval",
        "Interval",
        "It covers the noise, as often as its confidence says: not the sampling, not values clamped to the schema's "
        "bounds, and not rows beyond those that count of one unit.",
    ),
    ErrorExplanation(
        "named",
        "Intervals of discovered groups",
        "A group is named because its noisy number passed a threshold, so noise that lifted it is more likely than "
        "noise that lowered it, and the intervals allow for that: of the groups that are named, however small, each "
        "interval covers as often as its confidence says, and an estimate is as often too high as too low.",
    ),
    ErrorExplanation(
        "time-uniform",
        "Odometer, time-uniform",
        "True at any moment at which you choose to look, also at one chosen because of an answer; choose one such "
        "odometer before the first answer.",
    ),
    ErrorExplanation(
        ODOMETERS_PAUSED,
        "Odometers that pause",
        "The time-uniform odometers are proved for mechanisms that run one after another; while interactive ones are "
        "open, which may be asked in any order, the accumulator says what is proved, and closing them brings the "
        "others back.",
    ),
    ErrorExplanation(
        "interleaving",
        "Interleaving",
        "Interactive mechanisms may be asked in any order beside each other because each was charged before it "
        "answered, under a filter for which that is proved: GDP, (epsilon, delta)-DP, one Renyi order, or zCDP without "
        "a delta.",
    ),
    ErrorExplanation(
        EXCLUDED_UNITS,
        "Who takes part",
        "Each person has a budget of their own and pays only for the questions that touch them; who cannot pay for one "
        "is left out of it or counts in part, and since who and how many these are would give somebody away, nobody is "
        "told: an answer is about those who took part, and its interval covers the noise and not who was left out.",
    ),
    ErrorExplanation(
        "accumulator",
        "Odometer, accumulator",
        "Says that everything so far is inside any budget that was fixed beforehand and is at least this; it says "
        "nothing about a moment that was chosen by looking.",
    ),
]

EXPLANATIONS: tuple[ErrorExplanation, ...] = (*_ERRORS.values(), *_WARNINGS)
"""All of them, refusals first."""


def explanation_for(error: BaseException) -> ErrorExplanation:
    """The sentence of an error: that of its own class, or of the nearest one above."""
    return next((_ERRORS[kind] for kind in type(error).__mro__ if kind in _ERRORS), _ERRORS[errors.DpnbError])
