"""A query as a frozen value: what is measured, of which rows, for which groups.  Holds no data."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property, lru_cache

import msgspec

from dpnb._plan.description import STEP_OF, describe_aggregation
from dpnb._plan.expressions.nodes import Column, Cut, Expression, WithinUnit, columns_of, nodes_of
from dpnb._plan.expressions.rules import MAX_KEYS, public_key_count, public_keys_of
from dpnb._plan.expressions.spoken import spoken, zone_of_bins
from dpnb._plan.expressions.text import explained, name_text, named, words, zones_in_words
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    Measured,
    PlainView,
    Proportions,
)
from dpnb._plan.privacy_unit import NO_LIMITS, ContributionBounds, describe_bounds
from dpnb.errors import PlanError
from dpnb.schema import Key, Schema

MAX_WORDS = 1000
"""Characters of the words of a plan, as a curator is shown them; more only where the columns need more."""

MAX_KEPT = 16
"""Number of plans that are kept by their text: one release reads the plan of its row several times."""


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Every pair of rows that one unit has in two tables."""

    left: TableSource
    right: TableSource
    suffixes: tuple[str, str] = ("_x", "_y")


class GroupLevel(msgspec.Struct, frozen=True):
    """One level of groups: its name, and the expression whose values are the groups."""

    name: str
    expression: Expression


class PartSource(msgspec.Struct, frozen=True, tag="part", omit_defaults=True):
    """The rows of one group, as a separate table."""

    source: TableSource
    by: GroupLevel
    key: Key
    # A unit's rows count in at most this many groups, the first by the hash of `contribution`; None if a unit cannot be
    # in more groups than are charged.
    max_parts_per_unit: int | None = None


class PerUnit(msgspec.Struct, frozen=True, tag="per_unit", omit_defaults=True):
    """The first `rows` rows of each privacy unit, and of each combination of keys, as a separate table.

    Its columns are computed from the unit's rows, as expressions of each row that is kept.
    """

    source: TableSource
    columns: tuple[GroupLevel, ...]
    where: Expression | None = None  # selects the rows first
    keys: tuple[Expression, ...] = ()
    order: tuple[Expression, ...] = ()  # of the rows of a unit; without it in that of their hashes
    descending: tuple[bool, ...] = ()
    rows: int = 1

    @property
    def terms(self) -> tuple[Expression, ...]:
        """The expressions that choose the rows."""
        return (*((self.where,) if self.where is not None else ()), *self.keys, *self.order)


TableSource = str | Join | PartSource | PerUnit
"""A table of the session by its name (empty for the only one), a join of two, a part of one, or rows per unit."""


class Plan(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    dict=True,  # for what is computed from a plan once
):
    """What is measured, of which rows, for which groups."""

    aggregation: Measured
    where: Expression | None = None
    group_by: tuple[GroupLevel, ...] = ()  # every key has an answer, even without rows
    # public, one value for each level; None for every combination of the levels' public values
    group_keys: tuple[tuple[Key, ...], ...] | None = None
    contribution_bounds: ContributionBounds = NO_LIMITS  # in addition to the session's
    source: TableSource = ""

    def to_json(self) -> str:
        """The plan as JSON, the same text for equal plans."""
        return self.text

    @cached_property
    def text(self) -> str:
        """The JSON of `to_json`, made once."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @staticmethod
    @lru_cache(maxsize=MAX_KEPT)
    def from_json(text: str) -> Plan:
        """The plan that `to_json` wrote; raises `PlanError` if the text is not a plan."""
        try:
            return _PLANS.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise PlanError(
                f"plan: the text is not a plan of this version of dpnb ({error}); write one with to_json()"
            ) from None

    @property
    def words(self) -> str:
        """The query in words, for example ``mean of mdvis by coins where female == 1``."""
        return describe_plan(self, PlainView())

    @cached_property
    def scope_description(self) -> str:
        """Groups, rows and limits in words."""
        return self._scope(describe_level, explained)

    def _scope(self, level: Callable[[GroupLevel], str], text: Callable[[Expression], str]) -> str:
        words = ""
        if self.group_by:
            words += f" by {', '.join(map(level, self.group_by))}"
        if self.source:
            words += f" in {describe_source(self.source, _columns_of((self.aggregation, self.group_by, self.where)))}"
        if self.where is not None:
            words += f" where {text(self.where)}"
        if self.contribution_bounds != NO_LIMITS:
            words += f" ({describe_bounds(self.contribution_bounds)})"
        return words

    @cached_property
    def spoken_scope(self) -> str:
        """`scope_description` in the words of a title."""
        return self._scope(spoken_level, spoken)


_PLANS: msgspec.json.Decoder[Plan] = msgspec.json.Decoder(Plan)
"""Made once, at import: msgspec may crash where two threads need a type for the first time at once."""


def column(name: str) -> GroupLevel:
    """A level of groups that is a column."""
    return GroupLevel(name, Column(name))


def group_keys(plan: Plan, schema: Schema) -> tuple[tuple[Key, ...], ...]:
    """The keys of the groups, in order; raises `PlanError` if they are not public or too many."""
    counts = [public_key_count(group.expression, schema) for group in plan.group_by]
    if plan.group_keys is not None:
        return plan.group_keys
    total = 1
    for group, count in zip(plan.group_by, counts, strict=True):
        if count is None:
            raise PlanError(
                f"groups of {group.name!r}: are texts, and the set of texts is private; list public ones, as in "
                f"groupby({group.name!r}, keys=[...]), or find common ones with .discover({group.name!r}) first"
            )
        total *= count
    if total > MAX_KEYS:
        raise PlanError(f"{plan.words}: has {total:,} groups; at most {MAX_KEYS:,} are possible; give keys=[...]")
    keys: list[tuple[Key, ...]] = [()]
    for group in plan.group_by:
        values = public_keys_of(group.expression, schema) or ()
        keys = [(*key, value) for key in keys for value in values]
    return tuple(keys)


def describe_plan(plan: Plan, view: AnyView) -> str:
    """Plan and view in words, for example ``median of mdvis by coins``."""
    if isinstance(view, BoundsView):  # the bins are not groups that the analyst chose
        nodes = [group.expression for group in plan.group_by]
        column = ", ".join(explained(node.inner if isinstance(node, Cut) else node) for node in nodes)
        return f"bounds of {column}{msgspec.structs.replace(plan, group_by=()).scope_description}"
    if isinstance(view, Proportions) and view.within:
        view = msgspec.structs.replace(view, within=_describe_leading(plan, view.within))
    return describe_aggregation(plan.aggregation, view) + plan.scope_description


def spoken_title(plan: Plan, view: AnyView) -> str:
    """`describe_plan` as a reader says it: without code as far as there are words for it."""
    exact = describe_plan(plan, view)
    if isinstance(view, BoundsView) or (isinstance(view, Proportions) and view.within):
        return exact
    what = describe_aggregation(plan.aggregation, view, spoken)
    scope = plan.spoken_scope
    if what.startswith(STEP_OF):
        return f"{what.removeprefix(STEP_OF)}{scope}: a step towards its coefficients"
    comma = "," if scope.startswith(" by ") and what + scope != exact else ""
    return f"{what.rstrip(',')}{comma}{scope}" if comma else what + scope


def in_words(description: str, plan: Plan, view: AnyView) -> str:
    """A description that begins with the exact text of a query, with its `spoken_title` instead."""
    exact = describe_plan(plan, view)
    if not description.startswith(exact):
        return description
    return spoken_title(plan, view) + description.removeprefix(exact)


def title_of(plan: Plan, view: AnyView, limits: ContributionBounds) -> str:
    """`describe_plan` as a title, which says too where the limits of the session make rows like units."""
    words = describe_plan(plan, view)
    return with_once(words, plan) if limits.max_rows_per_group == 1 else words


def with_once(words: str, plan: Plan) -> str:
    """The words of a plan that counts one row of a unit in a group, which they say already if the query limits it."""
    once = ContributionBounds(max_rows_per_group=1)
    said = plan.contribution_bounds.max_rows_per_group == 1
    return words if said else f"{words} ({describe_bounds(once)})"


def describe_level(level: GroupLevel) -> str:
    """A level of groups: a column by its name, anything else by what it is made from."""
    is_column = isinstance(level.expression, Column) and level.expression.name == level.name
    return level.name if is_column else named(level.name, level.expression)


def spoken_level(level: GroupLevel) -> str:
    """A level of groups in the words of a title; a name that the analyst chose comes first."""
    made = spoken(level.expression)
    is_named = level.name != words(level.expression) and columns_of(level.expression) != {level.name}
    return f"{name_text(level.name)} ({made})" if is_named else made


def axis_name(level: GroupLevel) -> str:
    """A level of groups as an axis has it, whose labels say the ranges; a name that the analyst chose stays alone."""
    made = level.expression
    node, zone = (made.inner, zone_of_bins(made)) if isinstance(made, Cut) else (made, zones_in_words(made))
    is_named = level.name != words(made) and columns_of(made) != {level.name}
    if is_named:
        return f"{level.name}{zone}"
    return spoken(node) + (zone if isinstance(made, Cut) else "")


def _describe_leading(plan: Plan, within: str) -> str:
    """The leading levels that a view names, which are described beside it."""
    names = [level.name for level in plan.group_by]
    leading = next((number for number in range(1, len(names)) if ", ".join(names[:number]) == within), 0)
    return ", ".join(map(name_text, names[:leading])) or name_text(within)


def describe_source(source: TableSource, read: Collection[str] | None = None) -> str:
    """A table by its name, a join by both names, a part by its key, rows per unit by how their columns are made.

    Of the columns of rows per unit only those with a name in `read`, if it is given.
    """
    if isinstance(source, Join):
        usual = source.suffixes == Join.__struct_defaults__[0]
        named_apart = "" if usual else f" (suffixes {' and '.join(map(repr, source.suffixes))})"
        return f"{describe_source(source.left)} joined with {describe_source(source.right)}{named_apart}"
    if isinstance(source, PartSource):
        chosen = None if read is None else {*read, *_columns_of(source.by)}
        whole = f"{describe_source(source.source, chosen)}, " if source.source else ""
        key = name_text(source.key) if isinstance(source.key, str) else source.key
        return f"{whole}{describe_level(source.by)} {key}"
    if isinstance(source, PerUnit):
        return _describe_per_unit(source, read)
    return source


def _describe_per_unit(source: PerUnit, read: Collection[str] | None) -> str:
    """The rows per unit, and what each column that a reader could not guess is made from."""
    shown = [level for level in source.columns if read is None or level.name in read]
    rows = "one row" if source.rows == 1 else f"{source.rows} rows"
    text = f"{rows} for each unit{''.join(f' and {explained(key)}' for key in source.keys)}"
    if source.source:
        inner = _columns_of((shown, source.terms))
        text += f" of {describe_source(source.source, inner)}"
    if source.where is not None:
        text += f" where {explained(source.where)}"
    if source.order:
        signs = zip(source.order, source.descending or (False,) * len(source.order), strict=False)
        text += f" ordered by {', '.join(explained(by) + (' descending' if down else '') for by, down in signs)}"
    made = [describe_level(level) for level in shown if level.expression != Column(level.name)]
    return f"{text} ({'; '.join(made)})" if made else text


def columns_read(plan: Plan) -> list[str]:
    """The columns that a plan reads, each once, in the order in which they occur."""
    return _columns_of((plan.aggregation, plan.group_by, plan.where, plan.source))


def within_units(plan: Plan) -> list[WithinUnit]:
    """The values within units of a plan, in the order in which they occur."""
    return [node for node in nodes_of(plan) if isinstance(node, WithinUnit)]


def _columns_of(part: object) -> list[str]:
    return list(dict.fromkeys(node.name for node in nodes_of(part) if isinstance(node, Column)))


def shortened_words(text: str, plan: Plan, limit: int = MAX_WORDS) -> str:
    """The words of a plan, of limited length; the columns that it reads are not cut off."""
    if len(text) <= limit:
        return text
    reads = f" ...; reads {', '.join(columns_read(plan))}"
    return text[: max(limit - len(reads), limit // 2)] + reads
