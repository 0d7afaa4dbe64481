"""Odometers report a bound on the privacy loss so far, and never refuse.

Sessions offer those that `dpnb._core.accountant.filters_and_odometers` makes.

There are two kinds of bounds, which must not be mixed (`Odometer.kind` is one of them).

"time-uniform": with confidence 1 - delta the realised loss is below the bound at all moments simultaneously, so also at
a moment chosen because of the answers.

==================  ==========================================================================================
FilterOdometer      Whitehouse et al. 2023, Thm 3 (first bound), with the y that solves f(y) = epsilon; a line
MixtureOdometer     Whitehouse et al. 2023, Thm 3 (second bound) by way of Thm 5; Robbins 1970
StitchedOdometer    Whitehouse et al. 2023, Thm 3 (third bound); Howard et al. 2021, Thm 1
ReflectionOdometer  the reflection principle, for normal noise and V up to a horizon
RogersOdometer      Rogers et al. 2016, Thm 6.2
RenyiOdometer       Mironov 2017, Prop. 3, which holds for the running sum by Ville's inequality
BasicOdometer       Rogers et al. 2016, Thm 3.3
==================  ==========================================================================================

"accumulator": everything so far is within any budget that was fixed beforehand and is at least the bound.  That is not
a statement about a moment chosen because of the answers, for which it would be false.

===================  =========================================================================================
ApproxDPAccumulator  Haney et al. 2023, Thm 3.8
ZCDPAccumulator      Haney et al. 2023, Thm 4.11
RDPAccumulator       Haney et al. 2023, Thm 4.9
GDPAccumulator       Smith and Thakurta 2022, Thm 1, at every budget fixed beforehand
SpentAccumulator     the sum that any filter has counted, including parts and deltas
RenyiTracker         Feldman and Zrnic 2021, Algorithm 5
===================  =========================================================================================

What an odometer of either kind promises about a history is a promise about a part of it, :class:`TruncatedView`.

Choosing an odometer.  Each time-uniform odometer, with its parameters, must be chosen before the first answer.  The
smallest of several is a bound only if their deltas add up to the stated delta.  The pointwise curve
sqrt(2 V log(1/delta)) + V/2 at the current V, which ApproxDPAccumulator reports, is *not* time-uniform: by the law
of the iterated logarithm the loss exceeds it sooner or later with probability 1.

Why the sum V suffices.  Let L be the realised loss, and let V be the sum of mu^2 for GDP losses, 2 rho for zCDP and
epsilon^2 for DP losses (which are epsilon^2/2-zCDP).  The moments of a loss that is rho-zCDP given the past are at most
those of a normal with mean rho and variance 2 rho, so exp(lambda (L - V/2) - lambda^2 V/2) is a non-negative
supermartingale for every lambda >= 0, started at 1.  By Ville's inequality it ever exceeds 1/delta with probability at
most delta; so does its average over lambda.  A fixed lambda gives the line, a half-normal weight the mixture, one
lambda for each doubling of V the stitched curve.  For lambda < 0 the claim is false: only upper bounds follow.
No other delta is spent, and post-processing preserves the bound (conditional Jensen).

Open mechanisms.  All of this holds at every moment, also while interactive mechanisms are open and are queried in any
order, for what a session counts: a launch in full at its launch, before its first answer.

Proof.  For two neighbours, every history of a session is a randomised function of *steps*, non-interactive draws each
of which is chosen after all earlier ones: Gaussian answers, and for a scan one bit of randomised response that is drawn
at its launch (:mod:`dpnb.accounting.filters.renyi`).  Let V' be the sum for the steps so far.  What was counted so far
is at least V', since a mechanism was counted in full before it has taken all of its steps, and V is a function of the
messages.  Let R be the messages so far, with realised loss L_R, and L that of the steps, of which R is a function.  For
lambda >= 0 the ratio exp(-L_R) is the mean of exp(-L) given R, and t^-lambda is convex, so with V' <= V::

    exp(lambda (L_R - V/2) - lambda^2 V/2) <= E[exp(lambda (L - V'/2) - lambda^2 V'/2) | R]

at every time at which the analyst may stop.  On the right is the mean of a supermartingale started at 1, so the left
side has a mean of at most 1 at every such time.  Stop when it first reaches 1/delta: that happens with probability at
most delta.  So a line holds, hence the stitched curve and that of Rogers et al., which were proved by lines; so does an
average over lambda, the mixture; and so does one Renyi order, where lambda is the order less 1.  The sum of epsilons is
a bound for every outcome of the steps, so also for their means.  ∎

This is where the losses of hidden values matter: a bound that is proved for the values themselves, and not by such a
process, need not hold for what is computed from them (`ReflectionOdometer`).

Losses with a delta.  A release that is approximately DP, zCDP or GDP is a post-processing of one that also shows
whether its bad part occurred; the statement is about that view, whose loss is bounded unless a bad part occurs: the
losses' deltas add up against `slack_delta`, and above it the bound is infinite.  For a PointwiseDP loss it is about the
realised loss itself.  Given that it lies between -epsilon and epsilon its mean is at most epsilon^2/2 + delta, so the
sum of those deltas is added to the bound; without it Whitehouse et al. 2023, Theorem 3 does not hold for losses as
small as their deltas.
"""

from dpnb.accounting.odometers.accumulators import (
    ApproxDPAccumulator,
    GDPAccumulator,
    RDPAccumulator,
    RenyiTracker,
    ZCDPAccumulator,
)
from dpnb.accounting.odometers.base import Odometer, OdometerKind
from dpnb.accounting.odometers.curves import (
    FilterOdometer,
    MixtureOdometer,
    ReflectionOdometer,
    Sided,
    StitchedOdometer,
)
from dpnb.accounting.odometers.sums import BasicOdometer, RenyiOdometer, RogersOdometer, SpentAccumulator
from dpnb.accounting.odometers.truncated_view import TruncatedView

__all__ = [
    "ApproxDPAccumulator",
    "BasicOdometer",
    "FilterOdometer",
    "GDPAccumulator",
    "MixtureOdometer",
    "Odometer",
    "OdometerKind",
    "RDPAccumulator",
    "ReflectionOdometer",
    "RenyiOdometer",
    "RenyiTracker",
    "RogersOdometer",
    "Sided",
    "SpentAccumulator",
    "StitchedOdometer",
    "TruncatedView",
    "ZCDPAccumulator",
]
