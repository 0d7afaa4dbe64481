"""Noise mechanisms: calibration, sources of randomness, and exact sampling.

This layer handles numbers, never tables.
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
