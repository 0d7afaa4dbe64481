"""The methods of the result of a regression, with the names and shapes of statsmodels.

A *standard error* covers the sampling of the units and the noise together, a test is about the population, and both
compare with the normal distribution; without a sampling error there is neither, since the noise alone says nothing
about a population.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._browser.glossary import IN_THE_POPULATION
from dpnb.accounting.exact import Number, exact
from dpnb.accounting.intervals import fixed_radius
from dpnb.errors import InvalidValueError, RequestError
from dpnb.results.display import Displayed
from dpnb.results.estimates.linear import RegressionNumbers, chosen_terms
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.estimates.population import MEASURE_IT
from dpnb.results.tables.hypothesis_methods import level_of_test
from dpnb.results.tables.index import OfEstimates
from dpnb.results.tables.table import Estimates
from dpnb.results.testing import HypothesisTest, wald

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class RegressionSummary(Displayed):
    """The summary of a regression, which is displayed as text or HTML.

    Parameters
    ----------
    result : RegressionAnswer or RegressionResult
        The regression.

    Examples
    --------
    >>> type(df.regress("cost ~ age").release(mu=0.2).summary()).__name__
    'RegressionSummary'
    """

    result: Any


class RegressionMethods(OfEstimates[Any]):
    """The methods of a regression's result; a subclass is one of `Estimates`, whose outputs are the terms."""

    if TYPE_CHECKING:
        measured: Any

    @property
    def numbers(self) -> RegressionNumbers:
        """The released numbers from which everything else is computed."""
        return self.measured  # type: ignore[no-any-return]

    @property
    def params(self) -> pd.Series:
        """The coefficients, by the names that statsmodels gives to terms."""
        return self._series(self.arrays.displayed[0])

    @property
    def bse(self) -> pd.Series:
        """Standard errors of the coefficients: of the sampling of units and the noise together.

        Raises
        ------
        RequestError
            The sampling error is not known.
        """
        return self._series(self._standard_errors("bse"), "standard error")

    @property
    def tvalues(self) -> pd.Series:
        """Coefficients divided by their standard errors, to be compared with the normal distribution."""
        return self._series(self._ratios("tvalues"), "z")

    @property
    def zvalues(self) -> pd.Series:
        """The same as `tvalues`."""
        return self.tvalues

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided p-values of the hypotheses that a coefficient is 0 in the population.

        They hold for a regression that was fixed beforehand, and was not refined: an analyst who refines because of an
        answer keeps its sampling error.

        Raises
        ------
        RequestError
            The sampling error is not known, or the answer was refined.
        """
        self._refuse_refined("pvalues")
        found = [math.erfc(abs(ratio) / math.sqrt(2)) for ratio in self._ratios("pvalues").tolist()]
        return self._series(np.array(found), "p-value")

    def cov_params(self) -> pd.DataFrame:
        """Covariance of the coefficients, through sampling and noise together.

        Raises
        ------
        RequestError
            The sampling error is not known.

        Examples
        --------
        >>> answer = df.regress("cost ~ age", population=True).release(mu=0.2)
        >>> answer.cov_params().shape
        (2, 2)
        """
        import pandas as pd  # imported when first used

        self._standard_errors("cov_params")
        found = self.numbers
        names = self._names
        return pd.DataFrame(found.noise + (0.0 if found.sampling is None else found.sampling), names, names)

    def conf_int(self, alpha: Number = 0.05) -> pd.DataFrame:
        """Intervals of the coefficients, with the columns of `to_pandas`.

        Population intervals, as ``population_low`` and ``population_high``, where the sampling error is known; noise
        intervals, as ``low`` and ``high``, elsewhere.  At the confidence of the answer they are those that it shows,
        which also allow for refinements unless it was released with ``final=True``.

        Parameters
        ----------
        alpha : Number, default 0.05
            The probability that one of the intervals fails, > 0 and < 1.

        Raises
        ------
        RequestError
            The answer was refined, and `alpha` is not that of its intervals.

        Examples
        --------
        >>> answer = df.regress("cost ~ age").release(mu=0.2)
        >>> answer.conf_int().columns.tolist()
        ['low', 'high']
        """
        import pandas as pd  # imported when first used

        error = exact(alpha, name="conf_int: alpha")
        if not 0 < error < 1:
            raise InvalidValueError(f"conf_int: alpha must lie between 0 and 1; got {alpha!r}; 0.05 is usual")
        arrays, prefix = self.arrays, ""
        if self.population_arrays is not None:
            arrays, prefix = self.population_arrays, "population_"
        if abs(float(error) - (1 - self.confidence)) > 1e-12:
            self._refuse_refined(f"conf_int(alpha={alpha!r})")
            at_once = len(self._names) if self.simultaneous else 1
            z = fixed_radius([1.0], alpha=self._share * error / at_once)
            arrays = self.numbers.arrays(z, population=bool(prefix))
        columns = {f"{prefix}low": arrays.low[0], f"{prefix}high": arrays.high[0]}
        return pd.DataFrame(columns, index=self._names)

    def test(self, terms: object = None, *, value: Number = 0, alpha: Number = 0.05) -> HypothesisTest:
        """Test that coefficients are 0 in the population, or another value: all of them at once, by Wald's test; free.

        Parameters
        ----------
        terms : str or list of str, optional
            Names of terms, or of columns: of a category it is all its levels.  By default all but the intercept.
        value : Number, default 0
            What each of the coefficients is under the null hypothesis.
        alpha : Number, default 0.05
            The level of the decision, > 0 and < 1.

        Returns
        -------
        HypothesisTest
            NaN as statistic and p-value where the noise decides nothing.

        Raises
        ------
        RequestError
            The sampling error is not known, the answer was refined, or a term does not exist.

        Notes
        -----
        Wald's test with the covariance of sampling and noise, `cov_params`.

        Examples
        --------
        >>> answer = df.regress("cost ~ age + C(plan)", population=True).release(mu=0.3)
        >>> answer.test("plan").null
        'in the population, the coefficient of C(plan)[T.paid] is 0'
        >>> answer.test().df
        2
        """
        level, null = level_of_test(alpha), exact(value, name="test: value")
        if abs(null) > sys.float_info.max:
            raise InvalidValueError(f"test: value must be in the range of doubles; got {value!r}")
        numbers = self.numbers
        if numbers.unknown is None:
            self._standard_errors("test")
        self._refuse_refined("test")
        chosen = chosen_terms(numbers.terms, terms)
        covariance = numbers.noise + (0.0 if numbers.sampling is None else numbers.sampling)
        found = wald(self.arrays.displayed[0][chosen], covariance[np.ix_(chosen, chosen)], float(null))
        names = [self._names[index] for index in chosen]
        single = len(names) == 1
        what = f"the coefficient of {names[0]} is" if single else f"the coefficients of {', '.join(names)} are all"
        return HypothesisTest(
            null=f"{IN_THE_POPULATION}, {what} {float(null):g}",
            method=f"Wald's {'z-test' if single else 'chi-square test'} of {self.description}",
            statistic=found.value,
            df=found.df,
            pvalue=found.pvalue,
            alpha=level,
            estimate=self[self.outputs[1][chosen[0]]] if single else None,
            notice=self.notice,
        )

    def summary(self) -> RegressionSummary:
        """Coefficients with standard errors, tests and intervals, and what they are based on; text or HTML.

        Examples
        --------
        >>> answer = df.regress("cost ~ age").release(mu=0.2)
        >>> str(answer.summary()).splitlines()[2]
        '  model:               linear regression of cost'
        """
        return RegressionSummary(self)

    def predict(self, exog: pd.DataFrame) -> pd.Series:
        """The predicted mean of the outcome for the rows of a table, which is the analyst's own.

        Of a logistic regression it is the probability of the outcome that the summary names.

        Numbers are clamped to their declared bounds, as in the regression; a row with a missing value has no
        prediction.

        Parameters
        ----------
        exog : pandas.DataFrame
            A table with the columns of the regression, by their names in it.

        Raises
        ------
        RequestError
            A column is missing.

        Examples
        --------
        >>> import pandas as pd
        >>> answer = df.regress("cost ~ age").release(mu=0.2)
        >>> len(answer.predict(pd.DataFrame({"age": [20, 40, 60]})))
        3
        """
        import pandas as pd  # imported when first used

        if not isinstance(exog, pd.DataFrame):
            raise RequestError(
                f"predict: takes a pandas DataFrame with the columns of the regression; got {type(exog).__name__}"
            )
        found = self.numbers
        design = np.column_stack([term.of(exog) for term in found.terms])
        linear = design @ self.arrays.displayed[0]
        with np.errstate(over="ignore"):
            if found.family == "logistic":
                linear = 1 / (1 + np.exp(-linear))
            elif found.family == "poisson":
                linear = np.exp(linear)
        return pd.Series(linear, index=exog.index)

    @property
    def rsquared(self) -> Estimates:
        """R-squared with its noise interval, of a linear regression; it is not adjusted for the number of terms.

        Raises
        ------
        RequestError
            It is not known: the regression is not a linear one, or its coefficients are unknown.
        """
        return self._single(self.numbers.rsquared, "R-squared")

    @property
    def residual_variance(self) -> Estimates:
        """Variance of the residuals with its noise interval, of a linear regression.

        The sum of their squares is divided by the number of rows less that of the terms.

        Raises
        ------
        RequestError
            It is not known: the regression is not a linear one, or has fixed effects, or its coefficients are unknown.
        """
        return self._single(self.numbers.residual_variance, "residual variance")

    @property
    def nobs(self) -> Estimates:
        """Number of rows that count, as it was released, with its noise interval.

        Raises
        ------
        RequestError
            It is not known: the regression has fixed effects, or its coefficients are unknown.
        """
        return self._single(self.numbers.nobs, "number of rows")

    # --- what the methods have in common --------------------------------------------------------------------------

    @property
    def _names(self) -> list[str]:
        return [term.name for term in self.numbers.terms]

    @property
    def _share(self) -> Any:
        """The part of alpha that the intervals of the answer use: not all of it if it may be refined."""
        return 1

    def _series(self, values: Cells, name: str | None = None) -> pd.Series:
        from dpnb.results.tables.terms import TermSeries  # imports pandas

        return TermSeries(values, index=self._names, name=name)

    def __getitem__(self, key: Any) -> Estimates:
        """One coefficient by the name of its term, as of an answer."""
        from dpnb.results.tables.terms import term_named  # likewise

        wanted = term_named(key, self.outputs[1]) if isinstance(key, str) else key
        found: Estimates = super().__getitem__(wanted)
        return found

    def _standard_errors(self, verb: str) -> Cells:
        found = self.numbers.standard_errors
        if found is None:
            raise RequestError(
                f"{verb}: the sampling error of {self.description} is not known"
                f"{f' ({self.numbers.errors})' if self.numbers.errors else ''}; {self._population_remedy}; "
                + (".interval has the noise intervals" if self.has_intervals else ".params has the coefficients")
            )
        return np.where(np.isnan(self.arrays.displayed[0]), np.nan, found)

    @property
    def _population_remedy(self) -> str:
        return MEASURE_IT

    def _ratios(self, verb: str) -> Cells:
        with np.errstate(all="ignore"):
            return np.asarray(self.arrays.displayed[0] / self._standard_errors(verb))

    def _refuse_refined(self, verb: str) -> None:
        if self.is_refined:
            raise RequestError(
                f"{verb}: is not offered after a refinement, which may have been made because of the answer; "
                ".population_interval allows for it"
            )

    def _single(self, arrays: IntervalArrays | None, what: str) -> Estimates:
        if arrays is None:
            if self.numbers.unknown:
                reason = "its coefficients are unknown too; release it with more budget, or leave out terms"
            elif self.numbers.family == "linear":
                reason = "of deviations from the means of units no number of rows is measured; count them apart"
            else:
                reason = "a linear regression has it"
            raise RequestError(f"{what}: is not known for {self.description}; {reason}")
        return Estimates(
            description=f"{what} of {self.description}",
            names=(),
            keys=((),),
            outputs=None,
            arrays=arrays,
            confidence=self.confidence,
            notice=self.notice,
            is_refined=self.is_refined,
        )
