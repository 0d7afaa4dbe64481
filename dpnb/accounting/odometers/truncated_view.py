"""The truncated view: a history cut before the launch with which an odometer would exceed a threshold.

An odometer makes no promise about the whole history, which nothing stops from growing. Its promise is about every
truncated view: fix an odometer and a threshold before the first message, let the analyst interact with any mechanisms
in any way, and keep the messages up to the launch at which the bound *with that launch* would exceed the threshold.
What is kept is as private as the threshold says. (Lecuyer 2021, arXiv:2103.01379, has such views, and odometers for
Renyi DP that hold for them, for releases one after another.) Nothing that comes later is kept: neither cheaper launches
nor further messages of mechanisms that were launched before.

Claim, for an accumulator (Haney et al. 2023, Definition 1.13 and Lemma 2.19).  The truncated view at d is rho-zCDP with
rho = d (Theorem 4.11), Renyi DP of the accumulator's order with rho = d (Theorem 4.9), (d, delta)-DP (Theorem 3.8) or
d-GDP (Smith and Thakurta 2022, Theorem 1), also for interactive mechanisms that run concurrently.

Proof.  The bound with a launch is a function of that loss and the earlier ones, so it is known before the launch.
Stopping there is what a filter with the budget d does at its first refusal, and the filter's theorem bounds what it
lets through; for interactive mechanisms see :mod:`dpnb.accounting.filters.base`.  The bound of
:class:`~dpnb.accounting.RenyiTracker` is never below the sum of its order, so it only stops earlier, by a rule that is
known before the launch too.  ∎

Claim, for a time-uniform odometer.  The truncated view at d is (d, delta)-DP, where delta is the probability that the
odometer's statement is ever wrong; also for interactive mechanisms of a session (:mod:`dpnb.accounting.odometers`).

Proof.  Fix two neighbours, with distributions P and Q of the view, and an event S.  Except with probability delta under
P, the realised loss is within the bound at all times, so at the end of the view it is at most d.  Whether and where the
view ends is a function of the view, so its realised loss is that of its messages, and
P(S) <= P(S and loss <= d) + delta <= e^d Q(S) + delta.  If a loss is approximate this is shown for the view with the
hidden coins, of which the messages are a function.  ∎

The threshold must not depend on the messages.  A threshold that is chosen afterwards, such as the bound at a moment at
which the answers look good, proves nothing for an accumulator; for a time-uniform odometer the loss is then still
within the bound with the stated confidence, but the view is not (d, delta)-DP with a d that was chosen like this.

Deviations from the paper, whose Definition 1.13 and Algorithm 5 do not hold as printed.  They compare the state
*before* the launch, so that a first launch of any size would be kept; the returned view has one answer too many or too
few; and the definition stops at equality, with which nothing would ever fit a delta of 0.  Here the state contains the
launch, and a bound equal to the threshold is within it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from dpnb.accounting.exact import Frozen, Number, decimal_down, decimal_up, exact, non_negative, shown
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers.accumulators import Accumulator
from dpnb.accounting.odometers.base import TimeUniformOdometer
from dpnb.copying import safe_repr
from dpnb.errors import InvalidValueError


@dataclass(frozen=True, init=False, repr=False)
class TruncatedView(Frozen):
    """The messages of a history up to the launch with which an odometer would exceed a threshold.

    Haney et al. 2023, Definition 1.13, corrected: the bound that is compared includes the launch.  Frozen: `step` and
    `append` return the next view.  See :ref:`proof-the-truncated-view` for the theorem and its proof.

    Parameters
    ----------
    odometer : accumulator or time-uniform odometer
        The odometer before the first message, for example ``ZCDPAccumulator()``.
    threshold : Number
        At least 0, in the odometer's measure, rounded down to a double.  It must be fixed before the first message: the
        guarantee does not hold for a threshold that was chosen because of the messages.

    Attributes
    ----------
    odometer : Odometer
        The odometer at the end of the view, whose bound is within the threshold.
    messages : tuple
        The messages in the view.
    truncated : bool
        Whether the view has ended; nothing is added after that.

    Raises
    ------
    InvalidValueError
        The odometer is of another kind, such as `SpentAccumulator`, or the threshold is negative or not a number.

    Examples
    --------
    >>> from dpnb.accounting import GDP, TruncatedView, ZCDPAccumulator
    >>> view = TruncatedView(ZCDPAccumulator(), threshold=0.5)
    >>> view = view.step(GDP(0.6), "first").step(GDP(0.9), "second").step(GDP(0.1), "third")
    >>> view.messages, view.truncated, view.guarantee
    (('first',), True, ZCDP(rho=0.5))
    """

    odometer: Accumulator | TimeUniformOdometer
    threshold: Fraction
    messages: tuple[object, ...]
    truncated: bool

    def __init__(self, odometer: Accumulator | TimeUniformOdometer, threshold: Number) -> None:
        start: object = odometer
        if not isinstance(start, Accumulator | TimeUniformOdometer):
            raise InvalidValueError(
                f"odometer: must be an accumulator or a time-uniform odometer that counts losses, got {shown(start)}; "
                "give for example ZCDPAccumulator()"
            )
        bound = exact(decimal_down(non_negative(threshold, name="threshold")))
        self._set(odometer=start, threshold=bound, messages=(), truncated=not _is_within(start.bound, bound))

    @classmethod
    def from_history(
        cls,
        odometer: Accumulator | TimeUniformOdometer,
        threshold: Number,
        history: Iterable[tuple[Loss | None, object]],
    ) -> Self:
        """The truncated view of a whole history.

        Parameters
        ----------
        odometer, threshold
            As for the class.
        history : iterable of (Loss or None, object)
            In the order of time, the loss of each launch with its first message; None with a message of a mechanism
            that was launched before.

        Raises
        ------
        ConversionError
            The odometer cannot count a loss in the view.
        InvalidValueError
            The history consists of something else.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPAccumulator, PureDP, TruncatedView
        >>> history = [(GDP(0.3), "a count"), (PureDP(0.1), "launched"), (None, "below"), (GDP(0.5), "a sum")]
        >>> TruncatedView.from_history(GDPAccumulator(), 0.5, history).messages
        ('a count', 'launched', 'below')
        """
        view = cls(odometer, threshold)
        for entry in history:
            pair: object = entry
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise InvalidValueError(
                    f"history: must consist of pairs of a loss, or None, and a message; got {shown(pair)}; write for "
                    "example [(GDP(0.3), 'a count')]"
                )
            loss, message = entry
            view = view.append(message) if loss is None else view.step(loss, message)
        return view

    def step(self, loss: Loss, *messages: object) -> Self:
        """The view after a launch: with its messages, or ended before them if the bound would exceed the threshold.

        Parameters
        ----------
        loss : Loss
            The loss of the release or of the interactive mechanism that is launched.
        *messages : object
            The answers that the launch returns; more can be added with `append`.

        Raises
        ------
        ConversionError
            The odometer cannot count the loss.

        Examples
        --------
        >>> from dpnb.accounting import PureDP, MixtureOdometer, TruncatedView
        >>> view = TruncatedView(MixtureOdometer.tuned(v=0.1, delta=1e-6), threshold=2)
        >>> view = view.step(PureDP(0.2), "yes")
        >>> view.messages, view.guarantee
        (('yes',), ApproxDP(epsilon=2.0, delta=1e-06))
        """
        return self if self.truncated else self.after_launch(self.odometer.step(loss), *messages)

    def after_launch(self, after: Accumulator | TimeUniformOdometer, *messages: object) -> Self:
        """The view after a launch with which the odometer is `after`; see `step`.

        Parameters
        ----------
        after : accumulator or time-uniform odometer
            The odometer with the launch.
        *messages : object
            The answers that the launch returns.
        """
        if self.truncated:
            return self
        if not _is_within(after.bound, self.threshold):
            return self._changed(truncated=True)
        return self._changed(odometer=after, messages=(*self.messages, *messages))

    def append(self, *messages: object) -> Self:
        """The view after further messages of mechanisms in the view, which cost nothing; none if the view has ended.

        Parameters
        ----------
        *messages : object
            In the order of time.

        Examples
        --------
        >>> from dpnb.accounting import PureDP, TruncatedView, ZCDPAccumulator
        >>> view = TruncatedView(ZCDPAccumulator(), 0.5).step(PureDP(0.5)).append("below", "below", "above")
        >>> view.messages
        ('below', 'below', 'above')
        """
        return self if self.truncated else self._changed(messages=(*self.messages, *messages))

    @property
    def guarantee(self) -> Loss:
        """The loss of the view: the threshold in the odometer's kind of budget, whatever the history was."""
        return self.odometer.truncated_guarantee(self.threshold)

    def statement(self) -> str:
        """The guarantee in words.

        Examples
        --------
        >>> from dpnb.accounting import GDP, GDPAccumulator, TruncatedView
        >>> print(TruncatedView(GDPAccumulator(), 0.5).step(GDP(0.4), "a").step(GDP(0.4), "b").statement())
        The view ended before a launch that would have exceeded the threshold; its 1 message is within GDP(mu=0.5).
        """
        number = f"{len(self.messages)} message{'s' if len(self.messages) != 1 else ''}"
        so_far = f"{number} {'is' if len(self.messages) == 1 else 'are'} within {self.guarantee!r}"
        if self.truncated:
            return f"The view ended before a launch that would have exceeded the threshold; its {so_far}."
        return f"The view has not ended; its {so_far}, and so is every continuation that is cut at the threshold."

    @safe_repr
    def __repr__(self) -> str:
        return (
            f"TruncatedView(threshold={decimal_up(self.threshold)!r}, messages={len(self.messages)}, "
            f"truncated={self.truncated}, odometer={self.odometer!r})"
        )


def _is_within(bound: float, threshold: Fraction) -> bool:
    """Whether a bound, which is rounded up in its decimal meaning, is at most the threshold.

    The curves of time-uniform odometers have a margin of 2^-46, far above the distance to the shortest decimal.
    """
    return bound < math.inf and exact(bound) <= threshold
