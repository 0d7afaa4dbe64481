"""Hypothesis tests of estimates with population intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from dpnb._browser.glossary import IN_THE_POPULATION
from dpnb._plan.description import WITH_POPULATION
from dpnb.accounting.exact import Number, exact
from dpnb.errors import InvalidValueError, RequestError
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.tables.intervals import Intervals, are_apart
from dpnb.results.tables.operators import as_float
from dpnb.results.testing import (
    MAX_CELLS,
    UNKNOWN,
    GroupErrors,
    HypothesisTest,
    ReferredStatistic,
    Slope,
    equality,
    independence,
    of_value,
    trend,
    under_equality,
)
from dpnb.schema import Key, plain

CONSERVATIVE = (
    "a unit may be in several groups, and any dependence of their errors is allowed for: the test is conservative"
)
"""Remark about groups with units in common."""


def level_of_test(alpha: Number) -> float:
    """The level of a test that an analyst gave."""
    level = exact(alpha, name="test: alpha")
    if not 0 < level < 1:
        raise InvalidValueError(f"test: alpha must lie between 0 and 1; got {alpha!r}; 0.05 is usual")
    return float(level)


class Testing(Intervals):
    """The method `test`, and what it needs."""

    def test(
        self, against: object = None, *, groups: object = None, scores: object = None, alpha: Number = 0.05
    ) -> HypothesisTest:
        """Test a hypothesis about the population, with the sampling of the units and the noise; free.

        What is tested follows from the answer: of a single number, that it equals `against`, a number or another
        answer; of an answer by group, that all groups have the same value; of counts by two levels, that these are
        independent; with `scores`, that there is no trend over the groups.

        Parameters
        ----------
        against : number or Estimates, optional
            What a single number is compared with.
        groups : list of keys, optional
            Groups that were chosen beforehand; by default all.
        scores : list of numbers or mapping, optional
            A number for each group, in their order or by their keys.
        alpha : Number, default 0.05
            The level of the decision, > 0 and < 1.

        Returns
        -------
        HypothesisTest
            NaN as statistic and p-value where the noise decides nothing.

        Raises
        ------
        RequestError
            The sampling error is not known, the answer was refined, or its numbers share noise.

        Notes
        -----
        A test of one number inverts its population interval; several groups are compared by Wald's chi-square,
        independence by that of Gaboardi et al. 2016 (*Differentially private chi-squared hypothesis testing*).  Persons
        with several rows are clusters.  Tests of statistics packages take released numbers as exact, and reject true
        hypotheses too often.

        Examples
        --------
        >>> costs = df.groupby("plan")["cost"].mean(population=True).release(mu=0.3)
        >>> test = costs.test()
        >>> test.null
        'in the population, mean of cost by plan is the same for free and paid'
        >>> 0 <= test.pvalue <= 1
        True
        """
        level = level_of_test(alpha)
        self._refuse_untestable()
        if against is not None:
            if groups is not None or scores is not None:
                raise RequestError("test: takes a value or another answer, or groups or scores; got both")
            return self._against(against, level)
        if not self.names:
            raise RequestError(
                f"test: a single number is tested against a value or another answer, as in answer.test(0); got "
                f"{self.description}"
            )
        chosen: Testing = self._chosen(groups)
        if scores is not None:
            return chosen._trend(_scores_of(scores, chosen.keys), level)
        if len(self.names) > 1 and groups is None and self.sampled.statistic == "count":
            return self._independence(level)
        return chosen._equality(level)

    # --- the tests -------------------------------------------------------------------------------------------------

    def _against(self, against: object, level: float) -> HypothesisTest:
        if self.names:
            raise RequestError(
                f"test: only a single number is tested against another; select one group with [key]; got "
                f"{self.description}"
            )
        if isinstance(against, Testing):
            against._refuse_untestable()
            return self._difference(against, level)
        number = as_float(against)
        if number is None or not math.isfinite(number):
            raise RequestError(f"test: takes a finite number or another answer; got {against!r}")
        return self._result(
            f"{self.description} is {number:g}",
            "test of one value, by its population interval",
            self._statistic(number),
            level,
            estimate=self,
        )

    def _difference(self, other: Testing, level: float) -> HypothesisTest:
        between: Any = self - other
        if between.sampled is None:
            raise RequestError(
                f"test: {self.description} and {other.description} have intervals of different kinds; release "
                "both with the same final= and simultaneous="
            )
        return between._result(  # type: ignore[no-any-return]
            f"{self.description} and {other.description} are equal",
            "z-test of a difference, by its population interval",
            between._statistic(0.0),
            level,
            estimate=between,
            remarks=() if are_apart(self.group_values, other.group_values) else (CONSERVATIVE,),
        )

    def _statistic(self, null: float) -> ReferredStatistic:
        arrays = self._population()
        value, low, high = (float(end[0, 0]) for end in arrays.unclipped)
        return UNKNOWN if arrays.is_unknown.any() else of_value(value, low, high, self.sampled.z, null)

    def _equality(self, level: float) -> HypothesisTest:
        labels = [_label(key) for key in self.keys]
        if len(labels) < 2:
            raise RequestError(f"test: needs at least two groups; got {self.description}, {labels[0]}")
        self._refuse_shared_noise()
        if len(labels) == 2:
            first, second = (self[key if len(key) > 1 else key[0]] for key in self.keys)
            found = first.test(second, alpha=level)
            found = replace(
                found, remarks=(f"the estimate is that of {labels[0]} minus that of {labels[1]}", *found.remarks)
            )
            return self._renamed(found, f"{self.description} is the same for {labels[0]} and {labels[1]}")
        errors = self._errors()
        return self._result(
            f"{self.description} is the same in all {len(labels):,} groups",
            "chi-square test of equality (Wald)",
            equality(errors),
            level,
            remarks=() if errors.apart else (CONSERVATIVE,),
        )

    def _trend(self, scores: Cells, level: float) -> HypothesisTest:
        errors = self._errors()
        slope = trend(errors, scores)
        return self._result(
            f"{self.description} has no trend over {', '.join(self.names)}",
            "z-test of the slope over the scores of the groups",
            slope.statistic,
            level,
            estimate=self._slope(slope),
            remarks=() if errors.apart else (CONSERVATIVE,),
        )

    def _independence(self, level: float) -> HypothesisTest:
        rows, columns = (list(dict.fromkeys(key[at] for key in self.keys)) for at in (0, 1))
        places = {key: index for index, key in enumerate(self.keys)}
        if len(self.names) > 2 or len(places) != len(rows) * len(columns) or min(len(rows), len(columns)) < 2:
            raise RequestError(
                "test: independence needs counts by two levels, with at least two groups each, and all their pairs; "
                f"got {self.description}"
            )
        if len(places) > MAX_CELLS:
            raise RequestError(f"test: independence is offered for up to {MAX_CELLS:,} cells; got {len(places):,}")
        errors = self._errors(pooled=False)
        if not errors.apart:
            unit = None if self.sampled is None else self.sampled.unit
            named = "with the column of privacy_unit= for unit" if unit is None else f"for one row of each {unit}"
            raise RequestError(
                f"test: a unit may be counted in several cells of {self.description}, so the cells depend on each "
                f"other; count one row of each, as in df.drop_duplicates({'unit' if unit is None else repr(unit)}) "
                f"before the groups, {named}"
            )
        order = [places[row, column] for row in rows for column in columns]
        counts, noise, sampling = (array[order].reshape(len(rows), len(columns)) for array in errors[:3])
        return self._result(
            f"{self.names[0]} and {self.names[1]} are independent",
            "chi-square test of independence, with the covariance of the noise",
            independence(counts, noise, sampling, self.sampled.ratio),
            level,
        )

    # --- errors ----------------------------------------------------------------------------------------------------

    def _population(self) -> IntervalArrays:
        """The estimates with the intervals that decide; without limits where the noise leaves no estimate."""
        arrays: IntervalArrays | None = self.tested_arrays or self.population_arrays
        return arrays or self.arrays.widened(*np.full((2, *self.arrays.value.shape), np.nan))

    def _errors(self, *, pooled: bool = True) -> GroupErrors:
        """The estimates with their variances; those of counts and shares at their common value if `pooled`."""
        self._refuse_shared_noise()
        wider = self._population()
        z = self.sampled.z
        with np.errstate(all="ignore"):
            below, above = (distance[:, 0] for distance in wider.beyond(self.arrays))
            value, low, high = (end[:, 0] for end in self.arrays.unclipped)
            noise, sampling = ((high - low) / 2 / z) ** 2, ((below + above) / 2 / z) ** 2
            noise = np.where(wider.has_whole_range[:, 0] | np.isnan(wider.low[:, 0]), np.nan, noise)
            if pooled and self.sampled.ratio is not None:
                sampling = under_equality(value, sampling, z, self.sampled)
        return GroupErrors(value, noise, sampling, _are_all_apart(self.group_values))

    def _slope(self, slope: Slope) -> Any:
        """The slope as a number with intervals at the confidence of the answer."""
        z = self.sampled.z
        value, noise = np.array([[slope.value]]), np.sqrt([[slope.noise]])

        def arrays(deviation: Cells) -> IntervalArrays:
            low, high = value - z * deviation, value + z * deviation
            unknown = np.isnan(low)
            return IntervalArrays(value, np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high), noise)

        whole = self._with(
            f"slope of {self.description} over the scores",
            lambda _: arrays(noise),
            names=(),
            keys=((),),
            measurement_ids=(frozenset().union(*self.measurement_ids),),
            group_values=(),
            sampled=None,
        )
        return replace(whole, population_arrays=arrays(np.sqrt([[slope.noise + slope.sampling]])))

    # --- what is refused -------------------------------------------------------------------------------------------

    def _refuse_untestable(self) -> None:
        self._refuse_dates("test")
        if self.outputs is not None:
            name = repr(self.outputs[1][0])
            raise RequestError(
                f"test: has several numbers of each group or of the table; select one, as in answer[{name}]; got "
                f"{self.description}"
            )
        if self.population_arrays is None and not (self.keys and self.arrays.is_unknown.all()):
            raise RequestError(
                f"test: needs population intervals, and the sampling error of {self.description} is not known; "
                f"{self._population_remedy}"
            )
        if self.is_refined:
            raise RequestError(
                f"test: is not offered after a refinement, which may have been made because of the answer; got "
                f"{self.description}; .history[0] is the first answer, and .population_interval allows for refinements"
            )
        if self.source is not None and len(self.keys) < len(self.source.keys):
            raise RequestError(
                f"test: of {self.description} some groups are left out, perhaps because of what they show; test the "
                "answer itself, with groups=[...] for groups that were chosen beforehand"
            )
        if self.sampled is None:
            self._refuse_shared()

    def _refuse_shared_noise(self) -> None:
        ids = [*self.measurement_ids]
        if len(frozenset().union(*ids)) < sum(map(len, ids)):
            self._refuse_shared()

    def _refuse_shared(self) -> NoReturn:
        raise RequestError(
            f"test: the numbers of {self.description} use the same noise, or are no answer of one query; release the "
            "counts or means by group as a query of their own, as in df.groupby(...).size(), and test those"
        )

    def _chosen(self, groups: object) -> Any:
        if groups is None:
            return self
        keys = [group if isinstance(group, tuple) else (group,) for group in _listed(groups)]
        keys = [tuple(plain(part) for part in key) for key in keys]
        unknown = [key for key in keys if key not in self.keys]
        if unknown or len(set(keys)) < len(keys):
            raise RequestError(
                f"test: groups must be different keys of the answer; got {groups!r}; it has "
                f"{', '.join(_label(key) for key in self.keys[:25])}"
            )
        order = [self.keys.index(key) for key in keys]
        return replace(self._taken(order, [0], ""), source=None)

    # --- results ---------------------------------------------------------------------------------------------------

    def _result(
        self, null: str, method: str, found: ReferredStatistic, level: float, *, estimate: Any = None,
        remarks: tuple[str, ...] = (),
    ) -> HypothesisTest:  # fmt: skip
        return HypothesisTest(
            null=_in_words(null),
            method=method,
            statistic=found.value,
            df=found.df,
            pvalue=found.pvalue,
            alpha=level,
            estimate=estimate,
            remarks=remarks,
            notice=self.notice,
        )

    def _renamed(self, found: HypothesisTest, null: str) -> HypothesisTest:
        return replace(found, null=_in_words(null))


# --- arguments --------------------------------------------------------------------------------------------------------


def _listed(groups: object) -> list[Any]:
    groups = groups.tolist() if isinstance(groups, np.ndarray) else groups
    if not isinstance(groups, list | tuple | set | frozenset) or not groups:
        raise RequestError(f"test: groups must be a list of keys; got {groups!r}")
    return list(groups)


def _in_words(null: str) -> str:
    return f"{IN_THE_POPULATION}, {null.replace(WITH_POPULATION, '')}"


def _label(key: tuple[Key, ...]) -> str:
    return ", ".join(map(str, key))


def _scores_of(scores: object, keys: Sequence[tuple[Key, ...]]) -> Cells:
    """A score for each group, from a list in their order or from a mapping."""
    if isinstance(scores, Mapping):
        missing = [_label(key) for key in keys if (key if len(key) > 1 else key[0]) not in scores]
        if missing:
            raise RequestError(f"test: scores has none for the group {missing[0]}")
        scores = [scores[key if len(key) > 1 else key[0]] for key in keys]
    scores = scores.tolist() if isinstance(scores, np.ndarray) else scores
    if not isinstance(scores, list | tuple | range) or len(scores) != len(keys):
        raise RequestError(f"test: scores must have one number for each of the {len(keys)} groups; got {scores!r}")
    numbers = [as_float(float(score) if isinstance(score, bool) else score) for score in scores]
    finite = [one for one in numbers if one is not None and math.isfinite(one)]
    if len(finite) < len(numbers) or len(set(finite)) < 2:
        raise RequestError(f"test: scores must be finite numbers, not all the same; got {scores!r}")
    return np.array(finite)


def _are_all_apart(values: Sequence[Any]) -> bool:
    """Whether no unit is in two of the groups: some expression has another value in each."""
    own = [dict(mine) for mine in values]
    same = {frozenset(mine) for mine in own}
    return bool(own) and len(same) == 1 and same != {frozenset()} and len({*values}) == len(own)
