"""Hypothesis tests of released numbers: post-processing, which covers the sampling of the units and the noise.

Every test is total: whatever the released numbers are, it gives a p-value, or NaN where the noise decides nothing.

``hypothesis``    the result of a test; p-values
``groups``        numbers and a value, also coefficients of a regression; several groups; a trend over ordered groups
``independence``  rows and columns of a table of counts
"""
