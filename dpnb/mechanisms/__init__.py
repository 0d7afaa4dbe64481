"""Noise: how much of it a loss asks for, where it comes from, and how it is added without leaving a trace.

This layer knows numbers, never tables.

==================  ==========================================================================================
`calibration`       the smallest noise scale that keeps a declared loss
`gaussian`          sums of integers in, exactly rounded noisy sums out
`laplace`           discrete Laplace noise, sampled exactly with integers
`measurement`       what comes out: integers on a power-of-two grid
`exact_rounding`    the slow, certain decision for the few draws that doubles cannot settle
`threshold`         which groups may be named, by their noisy numbers of units
`randomness`        the only source of chance, and a seeded one that only tests may use
==================  ==========================================================================================
"""

from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.laplace import discrete_laplace, laplace_half_width, laplace_tail
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import NoiseSource, NotPrivateSeededSource, SystemNoiseSource
from dpnb.mechanisms.threshold import least_named, named, threshold_for

__all__ = [
    "Measurement",
    "NoiseSource",
    "NotPrivateSeededSource",
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
