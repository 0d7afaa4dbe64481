"""The state of one budget picker.

The state contains cost and expected error of every option of the slider, so that the browser looks them up and performs
no privacy computation.
"""

from __future__ import annotations

from typing import Final, Literal

from dpnb._protocol.types import NonNegative, Proportion, Record

VERSION: Final = 5
"""Of the picker's state; raised when a field is renamed, removed or changes its meaning."""


class Option(Record, frozen=True):
    """One position of the slider: a target, with cost and expected error of its release.

    Parameters
    ----------
    target : dict of str to str
        Sent back when the option is chosen, for example ``{"mu": "0.24", "at_most": "36/625"}``: the argument first,
        and the cost as mu squared, which the release must not exceed.
    cost : str
        What it costs as a percentage of the budget, in words; without a budget, as a loss.
    loss : str
        The loss of the answer, including earlier observations, for example "mu 0.24".
    confirm : str or None
        What the reader must confirm before the release; None if the cost is small.
    error : str
        The expected error in words, with its unit.
    error_value : float or None
        The expected error of the worst group as a number; None where it is not known or the units are mixed.
    relative_error : str or None
        The error relative to the current answer, in words.
    after : str
        The budget that would remain, in words; without a budget, the loss so far with this release.
    remaining : float or None
        Fraction of the budget that would remain; None without a budget.
    max_repetitions : str or None
        How many more queries at this cost would fit afterwards, in words; None without a budget.
    """

    target: dict[str, str]
    cost: str
    loss: str
    confirm: str | None
    error: str
    error_value: float | None
    relative_error: str | None
    after: str
    remaining: Proportion | None
    max_repetitions: str | None


class Preset(Record, frozen=True):
    """A button that moves the slider to one option.

    Parameters
    ----------
    id : str
    label : str
    meaning : str
    error : str
        The expected error in few words, without what it assumes.
    option : int
        Index of the option.
    """

    id: str
    label: str
    meaning: str
    error: str
    option: NonNegative


class CountStep(Record, frozen=True):
    """The count of rows to release first, after which the expected errors are known.

    Parameters
    ----------
    text : str
        Why the expected error is unknown.
    label : str
        Text of the button, with the cost as a percentage of the budget.
    loss : str or None
        The loss of the count; None if it was charged already.
    target : dict of str to str
        Sent back when the button is pressed.
    confirm : str or None
        As in `Option`.
    """

    text: str
    label: str
    loss: str | None
    target: dict[str, str]
    confirm: str | None


class Unanswered(Record, frozen=True):
    """A release that was charged and never answered; repeating it is free.

    Parameters
    ----------
    target : dict of str to str
    label : str
    """

    target: dict[str, str]
    label: str


class PickerRefusal(Record, frozen=True):
    """Why the last release was refused, with an explanation.

    Parameters
    ----------
    title : str
    message : str
    explanation : str
        Id of the explanation.
    text : str
    """

    title: str
    message: str
    explanation: str
    text: str


class AskOption(Record, frozen=True):
    """A precision that the curator can be asked for.

    Parameters
    ----------
    target : dict of str to str
        Sent back when it is chosen.
    label : str
        Expected error and cost, in words.
    """

    target: dict[str, str]
    label: str


class Ask(Record, frozen=True):
    """What an analyst can ask the curator of a service for.

    Parameters
    ----------
    options : list of AskOption
        From the cheapest to the most precise; at least one.
    start : int
        Index of the option that is selected at first.
    max_characters : int
        Of the reason.
    """

    options: list[AskOption]
    start: NonNegative
    max_characters: NonNegative


class RenderedAnswer(Record, frozen=True):
    """An answer as dpnb renders and escapes it.

    Parameters
    ----------
    html : str
    text : str
    hint : str or None
        How to get the answer again in code, in words.
    """

    html: str
    text: str
    hint: str | None


class PickerState(Record, frozen=True):
    """The state of a budget picker.

    Parameters
    ----------
    version : int
        Version of the state; the browser displays no other.
    phase : str
        "choosing", or "answered" once the answer is shown instead of the slider.
    query : str
        The query in words.
    notice : str or None
        As in the session's snapshot.
    session : str
        Name of the session.
    current : str or None
        The current precision of the answer; None before the first release.
    answer : RenderedAnswer or None
        The current answer.
    refusal : PickerRefusal or None
    unanswered : list of Unanswered
    completed_request : str or None
        Id, assigned by the browser, of the release whose outcome this state is the first to show.
    options : list of Option
        From the cheapest to the whole remaining budget; empty when nothing remains.  Without a budget, up to a fixed
        loss.
    presets : list of Preset
    start : int
        Index of the option that is selected at first.
    facts : list of str
        Facts that apply to every option.
    count_step : CountStep or None
        The count to release first; None if the expected errors are known, or if a count is not enough.
    count_answer : RenderedAnswer or None
        The count that was released here.
    ask : Ask or None
        What the curator can be asked for; None unless a cap leaves less than the budget.
    asked : str or None
        The request that was made here, in words; None before one.
    """

    version: Literal[5]
    phase: Literal["choosing", "answered"]
    query: str
    notice: str | None
    session: str
    current: str | None
    answer: RenderedAnswer | None
    refusal: PickerRefusal | None
    unanswered: list[Unanswered]
    completed_request: str | None
    options: list[Option]
    presets: list[Preset]
    start: NonNegative
    facts: list[str]
    count_step: CountStep | None
    count_answer: RenderedAnswer | None
    ask: Ask | None
    asked: str | None
