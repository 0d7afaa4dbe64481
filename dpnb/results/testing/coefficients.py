"""The test of coefficients of a regression: Wald's, with the covariance of sampling and noise.

With b the chosen coefficients, V their covariance and v their values under the null hypothesis, ``(b - v)' V^-1 (b -
v)`` has as many degrees of freedom as coefficients; of one coefficient its root is compared with the normal
distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpnb.errors import RequestError
from dpnb.results.estimates.noisy import Cells
from dpnb.results.estimates.regression import INTERCEPT, RegressionTerm
from dpnb.results.testing.hypothesis import UNKNOWN, TestStatistic
from dpnb.results.testing.independence import quadratic_form


def chosen_terms(terms: Sequence[RegressionTerm], wanted: object) -> list[int]:
    """The indices of terms by their names, or by the names of columns, for all terms of the column alone."""
    names = [term.name for term in terms]
    if wanted is None:
        return [index for index, name in enumerate(names) if name != INTERCEPT]
    listed = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(listed, list | tuple) or not listed:
        raise RequestError(
            f"test: takes the name of a term or a list of names; got {wanted!r}; it has {', '.join(names)}"
        )
    chosen: dict[int, None] = {}
    for name in listed:
        column = name.removeprefix("C(").removesuffix(")") if isinstance(name, str) else name
        own = [
            index
            for index, term in enumerate(terms)
            if term.name == name or (len(term.factors) == 1 and term.factors[0].column == column)
        ]
        if not own:
            raise RequestError(f"test: {name!r} is not a term or column of the regression; it has {', '.join(names)}")
        chosen |= dict.fromkeys(own)
    return list(chosen)


def wald(params: Cells, covariance: Cells, null: float) -> TestStatistic:
    """The test that all of these coefficients are `null`."""
    if len(params) == 1:
        variance = float(covariance[0, 0])
        known = math.isfinite(float(params[0])) and math.isfinite(variance) and variance > 0
        found = (float(params[0]) - null) / math.sqrt(variance) if known else math.nan
        return TestStatistic(found) if math.isfinite(found) else UNKNOWN
    return TestStatistic(quadratic_form(np.asarray(params - null), covariance), len(params))
