"""Survival curves from noisy cumulative counts: post-processing of one release.

Everything is total: whatever the released numbers are, a curve has an estimate, or is unknown where the number at risk
is not clear of its noise.

``layout``     the periods and groups, and the cells in which rows are counted
``counts``     events and rows at risk by period, from cumulative counts
``curves``     the curves, and bands by simulation of noise and sampling
``summaries``  medians and restricted means
``log_rank``   the test that all curves are the same
``answer``     what a release returns
"""
