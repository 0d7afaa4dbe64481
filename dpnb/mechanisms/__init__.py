"""Noise mechanisms: calibration, sources of randomness, and exact sampling.

This layer handles numbers, never tables.

=====================  ==========================================================================================
`calibration`          the smallest noise scale for a declared loss
`continual_counter`    a running total, released after every step, for one charge
`gaussian`             exactly rounded Gaussian noise added to integer sums, with a slow, exact decision for the few
                       draws that doubles cannot round with certainty
`laplace`              discrete Laplace noise, sampled exactly with integers
`measurement`          the released result: integers on a power-of-two grid
`partition_selection`  releases the groups whose noisy number of units reaches a threshold
`permute_and_flip`     chooses the largest of some counts, by permute-and-flip or by the exponential mechanism
`randomness`           the only source of randomness, and a seeded one for tests only; uniform integers and events of
                       probability exp(-g), drawn exactly
=====================  ==========================================================================================
"""

from dpnb.mechanisms.continual_counter import ContinualCounter, RunningTotal
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.laplace import discrete_laplace, laplace_half_width, laplace_tail
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import NoiseSource, NotPrivateSeededSource, SystemNoiseSource
from dpnb.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, least_named, named, threshold_for

__all__ = [
    "ContinualCounter",
    "ExponentialMechanism",
    "Measurement",
    "NoiseSource",
    "NotPrivateSeededSource",
    "PermuteAndFlip",
    "RunningTotal",
    "SystemNoiseSource",
    "discrete_laplace",
    "laplace_half_width",
    "laplace_tail",
    "least_named",
    "measure",
    "named",
    "sigma_for",
    "threshold_for",
]
