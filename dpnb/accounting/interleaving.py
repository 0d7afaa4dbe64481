"""The filters under which interactive mechanisms may run concurrently, with requests to them in any order.

=====================================  ==============================================================================
GDP, also with a delta; no budget      f-DP: an interactive mechanism with a trade-off function is an interactive
                                       post-processing of the pair of distributions that has it (Vadhan and Zhang
                                       2023), so a filter that is valid for non-interactive ones is valid for these
                                       (Haney et al. 2023, Section 3).  Delta-approximate mu-GDP is the trade-off
                                       function of two distributions: with probability delta the outcome reveals the
                                       table, otherwise it is N(0, 1) or N(mu, 1).  Both are mixtures as in the notes
                                       of :class:`dpnb.Budget`
(epsilon, delta)-DP: basic, Rogers     Haney et al. 2023, Section 3
RDP of one order                       Haney et al. 2023, Theorem 4.6
zCDP without a delta, and the sum V    Haney et al. 2023, Theorem 4.10
zCDP or RDP with a delta               open (Haney et al. 2023, Section 4): refused
RDP of several orders                  proved for each order alone; which order gives the bound may depend on the
                                       answers: refused
=====================================  ==============================================================================

The theorems are for finite communication: finitely many messages, each from a finite set.  A notebook makes finitely
many requests, and dpnb releases integers of finitely many digits.
"""

from __future__ import annotations

from dpnb.accounting.filters import RDPFilter, RogersFilter
from dpnb.accounting.guarantee import AnyFilter
from dpnb.accounting.losses import RDP, ZCDP

__all__ = ["interleaving_obstacle", "partition_obstacle"]


def interleaving_obstacle(filter_: AnyFilter) -> str | None:
    """Why interactive mechanisms may not be launched under this filter; None if they may."""
    if isinstance(filter_.budget, ZCDP | RDP) and filter_.budget.delta:
        kind = "zCDP" if isinstance(filter_.budget, ZCDP) else "Renyi DP"
        return (
            f"this filter counts approximate {kind} (it has a delta to spend), for which it is an open question "
            "whether interactive mechanisms may be interleaved (Haney et al. 2023, Section 4); use filter='gdp', or a "
            "budget without discovery_delta"
        )
    if isinstance(filter_, RDPFilter) and len(filter_.budget.orders) > 1:
        return (
            f"this filter counts {len(filter_.budget.orders)} Renyi orders, and interleaving is proved for one order "
            "chosen beforehand (Haney et al. 2023, Theorem 4.6): use an RDP filter of one order, or filter='zcdp'"
        )
    return None


def partition_obstacle(filter_: AnyFilter) -> str | None:
    """Why a partition may not be charged by its largest parts under this filter; None if it may."""
    if isinstance(filter_, RogersFilter):
        return (
            "the filter of Rogers et al. has no rule for charging the largest part alone, since it bounds no sum; "
            "use another filter, or query the parts without a partition"
        )
    return None
