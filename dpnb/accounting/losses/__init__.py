"""Privacy losses of releases: frozen, exact values.

A loss consists of a few exact rational parts that are added under composition; their meaning depends on the kind:

=============  =====================  ===============================================================================
kind           parts                  property of the release
=============  =====================  ===============================================================================
GDP            mu squared, delta      no easier to tell neighbours apart than N(0, 1) from N(mu, 1)
ZCDP           rho, delta             every Renyi divergence D_a is at most rho a (Bun and Steinke 2016)
RDP            rho for each order,    the Renyi divergences of these orders are at most these (Mironov 2017)
               delta
PureDP         epsilon                epsilon-DP
ApproxDP       epsilon, delta         (epsilon, delta)-DP
PointwiseDP    epsilon, delta         the realised loss is beyond epsilon with probability at most delta
PureGDP        mu squared, delta,     an epsilon-DP mechanism and a mu-GDP mechanism together
               epsilon
BoundedRange   range                  the logarithms of ratios of probabilities lie in an interval of this length
Repeated       sum of the epsilons    equal mechanisms in pure DP or bounded range, one after another
               or ranges
=============  =====================  ===============================================================================

A ``delta`` with mu or rho is that of approximate GDP, zCDP or Renyi DP: both neighbours' outputs share a
decomposition in which a part of weight at least 1 - delta has the property.  Conversions between kinds need a theorem;
see ``convert``.
"""

from dpnb.accounting.losses.epsilon import ApproxDP, BoundedRange, EpsilonLoss, PointwiseDP, PureDP, Repeated
from dpnb.accounting.losses.gaussian import GDP, ZCDP, GaussianLoss, PureGDP
from dpnb.accounting.losses.loss import Loss, loss_from_json
from dpnb.accounting.losses.renyi import RDP

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "BoundedRange",
    "EpsilonLoss",
    "GaussianLoss",
    "Loss",
    "PointwiseDP",
    "PureDP",
    "PureGDP",
    "Repeated",
    "loss_from_json",
]
