"""Everyone pays only for the questions that touch them: individual accounting, one array entry a unit.

=======================  ===========  ==================================================  ============================
name                     file         what it is                                          Feldman and Zrnic 2021
=======================  ===========  ==================================================  ============================
losses_of_linear_query   losses       what a unit loses in a noisy sum                    Example 2.7
losses_of_squares        losses       the same as mu squared, of squared norms            Example 2.7
remaining_of             losses       what a unit has left                                Algorithm 3
IndividualFilter         filter       a unit takes part as far as it can pay              Algorithms 3, 7; Theorem 1.2
NormFilter               norm_filter  a unit is clipped to what it has left               Algorithm 7
Till, Terms              till         where units pay for one question                 Algorithms 3, 7
WorstCase                worst_case   what is public: the unit that pays everything       section 4.2
norm_budget_variance     formulas     the noise that makes a norm budget rho-zCDP         Corollary 4.7
norm_budget_radius       formulas     how far such a noisy sum may be off                 Corollary 4.7
worst_case_rounds        formulas     the rounds that everybody can pay for               section 4.2
rho_of_descent           formulas     what k gradient steps cost                          Algorithm 6; Proposition 5.1
rho_of_filtered_descent  formulas     what any number of steps under a norm filter costs  Algorithm 7; Proposition 5.2
=======================  ===========  ==================================================  ============================

Koskela, Tobaben and Honkela 2023, *Individual Privacy Accounting with Gaussian Differential Privacy* (ICLR;
arXiv:2209.15596v2), carry individual accounting over to Gaussian differential privacy, where sums of mu squared are
tight; sessions count so, and `dpnb._core.unit_budgets` says why their promise holds.

``units`` reads arrays and numbers, ``rounding`` is arithmetic on arrays that never rounds in a unit's favour.

Everything per unit here is SENSITIVE: who takes part, how many, what anyone has spent or has left, and whether two
states are equal.  None of it may be shown, logged, counted or turned into an error or a warning; a unit's own figures
may be shown to that unit alone.  So errors about arrays are constant texts, and a filter's text and hash are the same
whatever the units did.  That an error is raised at all still says something of the array: a session gives only arrays
that cannot raise one.

The noise of a question is drawn ONCE and added to the sum over the active units; the sum may then be divided by a
public constant, never by the number of units or of active units.

Numbers: arrays are doubles taken literally, and so are noise scales and clips, for the noise is made from them; other
numbers mean what `exact` says, so a budget of the float 0.1 is 1/10, which is below the double 0.1.  Spending is
rounded up and what is left down, each operation to the next double and only if it was not exact: no unit is ever
under-charged, and dyadic sums stay exact.
"""

from __future__ import annotations

from dpnb.accounting.individual.admission import UnitAdmission, UnitChargeTerms
from dpnb.accounting.individual.filter import IndividualFilter, OnExhausted
from dpnb.accounting.individual.formulas import (
    norm_budget_radius,
    norm_budget_variance,
    rho_of_descent,
    rho_of_filtered_descent,
    worst_case_rounds,
)
from dpnb.accounting.individual.losses import losses_of_linear_query, losses_of_squares, remaining_of
from dpnb.accounting.individual.norm_filter import NormFilter
from dpnb.accounting.individual.worst_case import WorstCaseFilter, worst_case_filter

__all__ = [
    "IndividualFilter",
    "NormFilter",
    "OnExhausted",
    "UnitAdmission",
    "UnitChargeTerms",
    "WorstCaseFilter",
    "losses_of_linear_query",
    "losses_of_squares",
    "norm_budget_radius",
    "norm_budget_variance",
    "remaining_of",
    "rho_of_descent",
    "rho_of_filtered_descent",
    "worst_case_filter",
    "worst_case_rounds",
]
