"""A group that one person alone has is hardly ever named, and naming groups tells no more than is claimed.

The guarantee of a discovery has two parts (`dpnb.mechanisms.selection`): with probability at most delta any
group of one person alone is named, and the sizes of all other groups are protected by mu.  The attack on sessions is
`attacks/test_threshold.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan.measurements import Discovery
from dpnb._plan.plan import Plan, column
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.accounting.losses import GDP
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.randomness import NoiseSource, NotPrivateSeededSource
from dpnb.mechanisms.selection import named, threshold_for
from dpnb.schema import Bounded, Schema, Text

pytestmark = pytest.mark.statistical

ALARM = 1e-7
DELTA = Fraction(2, 100)
TRIALS = 6000

SCHEMA: Schema = {"t": Text(), "x": Bounded(0, 1)}
Name = Callable[..., tuple[list[int], Measurement]]

UNITS = {
    "rows": (PrivacyUnit(), 1),
    "one row a person": (PrivacyUnit("u", 1), 1),
    "three rows a person": (PrivacyUnit("u", 3), 3),
    "eight rows in at most five groups": (PrivacyUnit("u", 8, ContributionBounds(max_groups=5)), 5),
    "at most four groups": (PrivacyUnit("u", None, ContributionBounds(max_groups=4, max_rows_per_group=1)), 4),
}


def table(own_groups: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two common groups and one rare one, with and without a person who has more groups of their own."""
    others = pd.DataFrame({"u": range(60), "t": ["common"] * 30 + ["usual"] * 29 + ["rare"], "x": 1.0})
    person = pd.DataFrame({"u": 99, "t": [f"own{k}" for k in range(own_groups)], "x": 1.0})
    return pd.concat([person, others], ignore_index=True), others


def groups_of(rows: pd.DataFrame, unit: PrivacyUnit) -> tuple[LinearQuery, dict[Any, int]]:
    query = linear_query(Plan(Discovery("1/50"), group_by=(column("t"),)), SCHEMA, unit)
    keys, counts = present_groups(query, prepare(rows, SCHEMA, unit), SCHEMA)
    return query, {key[0]: int(count) for key, count in zip(keys, counts, strict=True)}


def times_named(unit: PrivacyUnit, name: Name = named, *, mu: float = 0.5) -> int:
    """How often one of that person's own groups is named in many discoveries."""
    query, counts = groups_of(table(9 if unit.column else 1)[0], unit)
    own = {place for place, key in enumerate(counts) if key.startswith("own")}
    sizes, sigma = np.array(list(counts.values())), sigma_for(query.l2_sensitivity_squared, GDP(mu))
    source = NotPrivateSeededSource(1)
    groups = query.l2_sensitivity_squared
    # Every group has noise of its own, so one table with many groups is as good as one after the other.
    found, _ = name(np.tile(sizes, TRIALS), sigma=sigma, groups=groups, delta=DELTA, source=source)
    return len({place // len(sizes) for place in found if place % len(sizes) in own})


def too_often(times: int, trials: int = TRIALS) -> bool:
    return bool(stats.binomtest(times, trials, float(DELTA), alternative="greater").pvalue < ALARM)


@pytest.mark.parametrize("unit", UNITS)
def test_a_group_of_one_person_alone_is_named_with_probability_at_most_delta(unit: str) -> None:
    """False alarm 1e-7 each.  It is named half as often at least, so the threshold is not needlessly high."""
    held, groups = UNITS[unit]
    query, counts = groups_of(table(9 if held.column else 1)[0], held)
    assert query.l2_sensitivity_squared == groups
    assert sum(key.startswith("own") for key in counts) == groups
    times = times_named(held)
    assert not too_often(times)
    assert times > float(DELTA) / 2 * TRIALS


def forgetting_groups(
    counts: Any, *, sigma: float, groups: int, delta: Fraction, source: NoiseSource
) -> tuple[list[int], Measurement]:
    """A threshold as if a person had one group."""
    del groups
    return named(counts, sigma=sigma, groups=1, delta=delta, source=source)


def without_the_one(
    counts: Any, *, sigma: float, groups: int, delta: Fraction, source: NoiseSource
) -> tuple[list[int], Measurement]:
    """A threshold on the noise, and not on the noise around one person."""
    return named(counts + 1, sigma=sigma, groups=groups, delta=delta, source=source)


def without_noise(
    counts: Any, *, sigma: float, groups: int, delta: Fraction, source: NoiseSource
) -> tuple[list[int], Measurement]:
    """Whatever is there is named."""
    _, noisy = named(counts, sigma=sigma, groups=groups, delta=delta, source=source)
    return list(range(len(counts))), noisy


@pytest.mark.parametrize("unit", [unit for unit, (_, groups) in UNITS.items() if groups > 1])
def test_control_a_threshold_that_forgets_how_many_groups_a_person_has_is_caught(unit: str) -> None:
    assert too_often(times_named(UNITS[unit][0], forgetting_groups))


@pytest.mark.parametrize("wrong", [without_the_one, without_noise])
@pytest.mark.parametrize("unit", UNITS)
def test_control_lower_thresholds_are_caught(unit: str, wrong: Name) -> None:
    assert too_often(times_named(UNITS[unit][0], wrong))


def test_control_a_threshold_for_more_groups_than_a_person_has_is_higher() -> None:
    thresholds = [threshold_for(3.0, groups, DELTA) for groups in (1, 2, 5, 50)]
    assert thresholds == sorted(set(thresholds))


@pytest.mark.parametrize("unit", UNITS)
def test_one_person_changes_the_sizes_of_others_groups_by_no_more_than_claimed(unit: str) -> None:
    held, groups = UNITS[unit]
    rows, others = table(0)[0], table(0)[1]
    person = pd.DataFrame({"u": 99, "t": ["common", "usual", "rare"] if held.column else ["rare"], "x": 1.0})
    query, with_person = groups_of(pd.concat([rows, person], ignore_index=True), held)
    without = groups_of(others, held)[1]
    moved = sum((with_person[key] - without[key]) ** 2 for key in without)
    assert set(with_person) == set(without)
    assert moved <= query.l2_sensitivity_squared
    assert moved == min(groups, 3)


# --- other people's groups --------------------------------------------------------------------------------------------

LEVELS = 8


def distinct(people: int) -> pd.DataFrame:
    """Each person has a text of their own in each of eight columns."""
    names = {f"t{level}": [f"p{person:04d}" for person in range(people)] for level in range(LEVELS)}
    return pd.DataFrame({"u": range(people), **names})


@pytest.mark.parametrize("people", [100, 238, 256, 300])
def test_how_many_texts_others_have_decides_nothing_about_a_persons_groups(people: int) -> None:
    """At 235 texts in each of eight columns their combinations no longer fit 64 bits."""
    schema: Schema = {f"t{level}": Text() for level in range(LEVELS)}
    unit = PrivacyUnit("u", 1)
    plan = Plan(Discovery("1/50"), group_by=tuple(column(name) for name in schema))
    query = linear_query(plan, schema, unit)
    keys, counts = present_groups(query, prepare(distinct(people), schema, unit), schema)
    assert len(keys) == people
    assert counts.tolist() == [1] * people


@pytest.mark.parametrize("missing", [0, 17, 237])
def test_one_person_changes_nobody_elses_groups_when_there_are_very_many(missing: int) -> None:
    schema: Schema = {f"t{level}": Text() for level in range(LEVELS)}
    unit = PrivacyUnit("u", 3, ContributionBounds(max_groups=2))
    plan = Plan(Discovery("1/50"), group_by=tuple(column(name) for name in schema))
    query = linear_query(plan, schema, unit)
    everybody = distinct(238)
    found = []
    for rows in (everybody, everybody[everybody["u"] != missing]):
        keys, counts = present_groups(query, prepare(rows, schema, unit), schema)
        found.append(dict(zip(keys, counts.tolist(), strict=True)))
    changed = {key for key in found[0] | found[1] if found[0].get(key) != found[1].get(key)}
    assert len(changed) <= query.l2_sensitivity_squared
