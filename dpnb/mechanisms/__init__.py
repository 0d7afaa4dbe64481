"""Noise: how much of it a loss asks for, where it comes from, and how it is added without leaving a trace.

This layer knows numbers, never tables.

==================  ==========================================================================================
`calibration`       the smallest noise scale that keeps a declared loss
`gaussian`          sums of integers in, exactly rounded noisy sums out
`laplace`           discrete Laplace noise, sampled exactly with integers
`measurement`       what comes out: integers on a power-of-two grid
`exact_rounding`    the slow, certain decision for the few draws that doubles cannot settle
`randomness`        the only source of chance, and a seeded one that only tests may use
==================  ==========================================================================================
"""
