"""The state of one budget picker.

The state contains cost and expected error of every option of the slider, so that the browser looks them up and performs
no privacy computation.
"""

from __future__ import annotations

from typing import Final, Literal

from dpnb._protocol.types import NonNegative, Proportion, Record

VERSION: Final = 7
"""Of the picker's state; raised when a field is renamed, removed or changes its meaning."""


class Option(Record, frozen=True):
    """One position of the slider: a target, with cost and expected error of its release."""

    # Sent back when the option is chosen, for example ``{"mu": "0.24", "at_most": "36/625"}``: the argument first, and
    # the cost as mu squared, which the release must not exceed.
    target: dict[str, str]
    cost: str  # What it costs as a percentage of the budget, in words; without a budget, as a loss.
    loss: str  # The loss of the answer, including earlier observations, for example "mu 0.24".
    confirm: str | None  # What the reader must confirm before the release; None if the cost is small.
    error: str  # The expected error in words, with its unit; of `errors`, what they are and assume.
    # The expected errors of many statistics as a table, whose first row is its head; None where `error` has them.
    errors: list[list[str]] | None
    # The expected error of the worst group as a number; None where it is not known or the units are mixed.
    error_value: float | None
    # For a refinement, the error that one release at the total loss would have had, in words; None if it is unknown.
    in_one_release: str | None
    relative_error: str | None  # The error relative to the current answer, in words.
    after: str  # The budget that would remain, in words; without a budget, the loss so far with this release.
    remaining: Proportion | None  # Fraction of the budget that would remain; None without a budget.
    # How many more queries at this cost would fit afterwards, in words; None without a budget.
    max_repetitions: str | None


class Preset(Record, frozen=True):
    """A button that moves the slider to one option."""

    id: str
    label: str
    meaning: str
    error: str  # The expected error in few words, without what it assumes.
    option: NonNegative  # Index of the option.


class CountStep(Record, frozen=True):
    """The count of rows to release first, after which the expected errors are known."""

    text: str  # Why the expected error is unknown.
    label: str  # Text of the button, with the cost as a percentage of the budget.
    loss: str | None  # The loss of the count; None if it was charged already.
    target: dict[str, str]  # Sent back when the button is pressed.
    confirm: str | None  # As in `Option`.


class Unanswered(Record, frozen=True):
    """A release that was charged and never answered; repeating it is free."""

    target: dict[str, str]
    label: str


class PickerRefusal(Record, frozen=True):
    """Why the last release was refused, with an explanation."""

    title: str
    message: str
    explanation: str  # Id of the explanation.
    text: str


class AskOption(Record, frozen=True):
    """A precision that the curator can be asked for."""

    target: dict[str, str]  # Sent back when it is chosen.
    label: str  # Expected error and cost, in words.


class Ask(Record, frozen=True):
    """What an analyst can ask the curator of a service for."""

    options: list[AskOption]  # From the cheapest to the most precise; at least one.
    start: NonNegative  # Index of the option that is selected at first.
    max_characters: NonNegative  # Of the reason.


class RenderedAnswer(Record, frozen=True):
    """An answer as dpnb renders and escapes it."""

    html: str
    text: str
    hint: str | None  # How to get the answer again in code, in words.


class PickerState(Record, frozen=True):
    """The state of a budget picker."""

    version: Literal[7]  # Version of the state; the browser displays no other.
    phase: Literal["choosing", "answered"]  # "choosing", or "answered" once the answer is shown instead of the slider.
    query: str  # The query in words.
    notice: str | None  # As in the session's snapshot.
    session: str  # Name of the session.
    current: str | None  # The current precision of the answer; None before the first release.
    answer: RenderedAnswer | None  # The current answer.
    refusal: PickerRefusal | None
    unanswered: list[Unanswered]
    # Id, assigned by the browser, of the release whose outcome this state is the first to show.
    completed_request: str | None
    # From the cheapest to the whole remaining budget; empty when nothing remains or a count comes first. Without
    # a budget, up to a fixed loss.
    options: list[Option]
    presets: list[Preset]
    start: NonNegative  # Index of the option that is selected at first.
    facts: list[str]  # Facts that apply to every option.
    # The count to release first; None if the expected errors are known, or if a count is not enough.
    count_step: CountStep | None
    count_answer: RenderedAnswer | None  # The count that was released here.
    ask: Ask | None  # What the curator can be asked for; None unless a cap leaves less than the budget.
    asked: str | None  # The request that was made here, in words; None before one.
