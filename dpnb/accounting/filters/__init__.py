"""Filters refuse; `FILTERS` lists those that sessions offer.

A state and a loss give a new state, or a refusal that leaves the old state unchanged.

A filter enforces one guarantee, fixed before the first answer, however the losses are chosen afterwards.

==============  ==============================================================  ===================================
filter          admits a loss while, with it,                                   theorem
==============  ==============================================================  ===================================
BasicFilter     sum epsilon <= epsilon and sum delta <= delta                   Rogers et al. 2016, Thm 3.3
RogersFilter    K(losses) <= epsilon and sum delta <= delta/2                   Rogers et al. 2016, Thm 5.1
ApproxDPFilter  sum epsilon^2 <= y* and sum delta <= slack_delta                Whitehouse et al. 2023, Thm 8
ZCDPFilter      sum rho <= rho and sum delta <= delta                           Whitehouse et al. 2023, Thm 1;
                                                                                Feldman and Zrnic 2021, Remark 4.4
RDPFilter       sum rho(a) <= budget(a) for every order a and                   Feldman and Zrnic 2021, Thm 4.3;
                sum delta <= delta                                              with a delta as Whitehouse et al.
                                                                                2023, Thm 1
GDPFilter       sum mu^2 <= mu0^2 and sum delta <= delta;                       Smith and Thakurta 2022, Thm 1;
                an epsilon-DP loss is charged what it takes from the            Regehr et al. 2026 (GDP residue
                remaining budget, or a reserve within sum epsilon <= reserve    filter); proved in ``conversions``
==============  ==============================================================  ===================================

All except RogersFilter compare an exact sum with a bound (``sum_filter``); they differ in the losses that they add.  A
loss of another kind is converted by the tightest theorem that allows it; if there is none, a ``ConversionError`` is
raised.  UnboundedFilter is that of a session without a budget: it adds mu^2 and refuses nothing.  What several sessions
about one unit guarantee together is in ``several``.
"""

from dpnb.accounting.filters.approx_dp import ApproxDPFilter, BasicFilter
from dpnb.accounting.filters.base import Filter
from dpnb.accounting.filters.gdp import GDPFilter
from dpnb.accounting.filters.renyi import RDPFilter, ZCDPFilter
from dpnb.accounting.filters.rogers import RogersFilter
from dpnb.accounting.filters.sum_filter import SumFilter, UnboundedFilter

__all__ = [
    "FILTERS",
    "ApproxDPFilter",
    "BasicFilter",
    "Filter",
    "GDPFilter",
    "RDPFilter",
    "RogersFilter",
    "SumFilter",
    "UnboundedFilter",
    "ZCDPFilter",
]

FILTERS: dict[str, type[Filter]] = {
    each.name: each for each in (GDPFilter, ZCDPFilter, RDPFilter, ApproxDPFilter, RogersFilter, BasicFilter)
}
"""The filters by the names that ``filter=`` accepts; a further one is added here."""
