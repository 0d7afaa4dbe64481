"""Fully adaptive composition as pure mathematics: no files, clock, randomness or tables.

The table below lists the theorems; the docstring of each module or subpackage has the details.  The names in
`__all__`, and those of ``conversions`` and ``individual``, are the public library; each has an example.

=================  ====================================================================================
exact              what a float means; directed rounding
losses             GDP, ZCDP, RDP, PureDP, ApproxDP, PointwiseDP, PureGDP: the loss of one release, exact; Repeated:
                   that of several equal ones; BoundedRange: that of the exponential mechanism
conversions        between numbers: Dong, Roth and Su 2022 (mu), Canonne, Kamath and Steinke 2020
                   (rho, Renyi), Kairouz, Oh and Viswanath 2015 (pure); also the simple forms of the papers
convert            between kinds of loss, where a theorem allows it
filters            refuse a loss.  GDPFilter: Smith and Thakurta 2022, Theorem 1; for pure-DP losses Regehr
                   et al. 2026.  ZCDPFilter: Whitehouse et al. 2023, Theorem 1; Feldman and Zrnic 2021,
                   Remark 4.4.  RDPFilter: Feldman and Zrnic 2021, Theorem 4.3, with a delta as Whitehouse et
                   al. 2023, Theorem 1.  ApproxDPFilter: Whitehouse et al. 2023, Theorem 8.  RogersFilter and
                   BasicFilter: Rogers et al. 2016, Theorems 5.1 and 3.3.  Which of them allow concurrent
                   interactive mechanisms: Haney et al. 2023
odometers          report the loss, in two senses that are never mixed.  Time-uniform: Whitehouse et al. 2023,
                   Theorem 3; Rogers et al. 2016, Theorem 6.2.  Accumulators: Haney et al. 2023, Theorems
                   3.8, 4.9 and 4.11; Feldman and Zrnic 2021, Algorithm 5.  TruncatedView: Haney et al. 2023,
                   Definition 1.13
individual         each unit is charged for the queries that use its data: Feldman and Zrnic 2021,
                   Algorithms 3, 5 and 7; for Gaussian DP Koskela, Tobaben and Honkela 2023
partition_cost     the cost of a partition: the growth of its largest part; see also Henzinger, Safavi and
                   Vadhan 2024
budget, guarantee  the budget that the curator declares, or that there is none, and how each filter enforces it
intervals          repeatedly refined estimates, and intervals that remain valid (Robbins 1970); the best parameter
                   of a normal mixture, also for the odometers
prefix_sums        the square root of prefix sums, for counts over time (Fichtenberger, Henzinger and
                   Upadhyay 2023)
truncated_normal   intervals for a value that is seen only above a threshold (Lee, Sun, Sun and Taylor 2016)
=================  ====================================================================================

A filter or an odometer is a small frozen state: `step` returns the next state and leaves the old one unchanged.

>>> from dpnb.accounting import GDP, GDPFilter
>>> before = GDPFilter(mu=1)
>>> after = before.step(GDP(0.6))
>>> after.affordable(), after.admits(GDP(0.9))
(GDP(mu=0.8), False)
>>> round(after.guaranteed_epsilon(delta=1e-6), 3)
4.887

Where a printed theorem does not hold, the corrected form is used and its docstring says why.
"""

from dpnb.accounting.budget import Budget, NoBudget
from dpnb.accounting.convert import convert, group_privacy
from dpnb.accounting.filters import (
    ApproxDPFilter,
    BasicFilter,
    Filter,
    GDPFilter,
    RDPFilter,
    RogersFilter,
    SumFilter,
    UnboundedFilter,
    ZCDPFilter,
)
from dpnb.accounting.intervals import combine, confidence_sequence_radius, fixed_radius, tuned_tau
from dpnb.accounting.losses import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    BoundedRange,
    EpsilonLoss,
    Loss,
    PointwiseDP,
    PureDP,
    PureGDP,
    Repeated,
    loss_from_json,
)
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    BasicOdometer,
    FilterOdometer,
    GDPAccumulator,
    MixtureOdometer,
    Odometer,
    RDPAccumulator,
    ReflectionOdometer,
    RenyiOdometer,
    RenyiTracker,
    RogersOdometer,
    SpentAccumulator,
    StitchedOdometer,
    TruncatedView,
    ZCDPAccumulator,
)

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "ApproxDPAccumulator",
    "ApproxDPFilter",
    "BasicFilter",
    "BasicOdometer",
    "BoundedRange",
    "Budget",
    "EpsilonLoss",
    "Filter",
    "FilterOdometer",
    "GDPAccumulator",
    "GDPFilter",
    "Loss",
    "MixtureOdometer",
    "NoBudget",
    "Odometer",
    "PointwiseDP",
    "PureDP",
    "PureGDP",
    "RDPAccumulator",
    "RDPFilter",
    "ReflectionOdometer",
    "RenyiOdometer",
    "RenyiTracker",
    "Repeated",
    "RogersFilter",
    "RogersOdometer",
    "SpentAccumulator",
    "StitchedOdometer",
    "SumFilter",
    "TruncatedView",
    "UnboundedFilter",
    "ZCDPAccumulator",
    "ZCDPFilter",
    "combine",
    "confidence_sequence_radius",
    "convert",
    "fixed_radius",
    "group_privacy",
    "loss_from_json",
    "tuned_tau",
]
