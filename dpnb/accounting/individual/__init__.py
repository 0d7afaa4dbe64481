"""Individual accounting: each unit is charged only for the queries that use its data; one array entry for each unit.

=======================  ==================================================  ============================
name                     content                                             Feldman and Zrnic 2021
=======================  ==================================================  ============================
losses_of_linear_query   loss of each unit in a noisy sum                    Example 2.7
losses_of_squares        the same as mu squared, from squared norms          Example 2.7
per_instance_losses      loss of each unit of one table; not for a filter    Definition 2.6
remaining_of             remaining budget of each unit                       Algorithm 3
IndividualFilter         excludes or clips exhausted units                   Algorithms 3, 7; Theorem 1.2
NormFilter               clips each unit to its remaining budget             Algorithm 7
UnitAdmission            charges the units for one query                     Algorithms 3, 7
UnitChargeTerms          the public terms of that charge                     Algorithms 3, 7
UnitTracker              bound on one unit's loss so far, for that unit      Algorithm 5
WorstCaseFilter          the public part: a unit that every query uses       section 4.2
norm_budget_variance     the noise that makes a norm budget rho-zCDP         Corollary 4.7
norm_budget_radius       error bound of such a noisy sum                     Corollary 4.7
worst_case_rounds        the number of rounds that every budget covers       section 4.2
rho_of_descent           cost of k gradient steps                            Algorithm 6; Proposition 5.1
rho_of_filtered_descent  cost of any number of steps under a norm filter     Algorithm 7; Proposition 5.2
=======================  ==================================================  ============================

Koskela, Tobaben and Honkela 2023, *Individual Privacy Accounting with Gaussian Differential Privacy* (ICLR;
arXiv:2209.15596v2), extend individual accounting to Gaussian differential privacy, where sums of mu squared are
tight; sessions use this form.

Everything per unit here is SENSITIVE: which units take part, how many, what any unit has spent or has left, and whether
two states are equal.  None of it may be shown, logged, counted or turned into an error or a warning; a unit's own
numbers may be shown to that unit alone.  So errors about arrays are constant texts, and a filter's repr and hash do not
depend on the units' losses.  Whether an error is raised still reveals something about the array: a session passes only
arrays that cannot raise one.

The noise of a query is drawn ONCE and added to the sum over the active units; the sum may then be divided by a
public constant, never by the number of units or of active units.

Numbers: arrays are doubles taken literally, and so are noise scales and clips, because the noise is generated from
them; other numbers are read by `exact`, so a budget of the float 0.1 is 1/10, which is below the double 0.1.  Spending
is rounded up and the remainder down, each operation to the next double and only if it was not exact: no unit is ever
under-charged, and dyadic sums stay exact.
"""

from __future__ import annotations

from dpnb.accounting.individual.filter import IndividualFilter, OnExhausted, UnitAdmission, UnitChargeTerms
from dpnb.accounting.individual.formulas import (
    norm_budget_radius,
    norm_budget_variance,
    rho_of_descent,
    rho_of_filtered_descent,
    worst_case_rounds,
)
from dpnb.accounting.individual.losses import (
    losses_of_linear_query,
    losses_of_squares,
    per_instance_losses,
    remaining_of,
)
from dpnb.accounting.individual.norm_filter import NormFilter
from dpnb.accounting.individual.worst_case import UnitTracker, WorstCaseFilter, worst_case_filter

__all__ = [
    "IndividualFilter",
    "NormFilter",
    "OnExhausted",
    "UnitAdmission",
    "UnitChargeTerms",
    "UnitTracker",
    "WorstCaseFilter",
    "losses_of_linear_query",
    "losses_of_squares",
    "norm_budget_radius",
    "norm_budget_variance",
    "per_instance_losses",
    "remaining_of",
    "rho_of_descent",
    "rho_of_filtered_descent",
    "worst_case_filter",
    "worst_case_rounds",
]
