"""Formulas of regressions, and the models and measurements that they stand for.

    formula     = name "~" product ("+" product)* ["|" name]
    product     = interaction ("*" interaction)*
    interaction = factor (":" factor)*
    factor      = name | "C(" name ")" | "1"

Nothing is evaluated: a name is a column of the view.  A name that is not an identifier is written in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, islice, product
from typing import NoReturn

from dpnb._plan.expressions.dtypes import Boolean, Categorical
from dpnb._plan.expressions.nodes import Arithmetic, AsNumber, Compare, Expression, Literal
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import DeviationProducts, Moments, MomentsView, RegressionModel, SlopesView
from dpnb._plan.regression import FAMILIES, design
from dpnb.errors import PlanError
from dpnb.frame.coerce import as_number
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.view import TableView
from dpnb.query.query import Query
from dpnb.schema import Key

# --- formulas of regressions as text ----------------------------------------------------------------------------------


MAX_LENGTH = 10_000
"""Largest number of characters of a formula."""

_SYMBOL = re.compile(r"\s*(?:(`[^`]+`)|([^\W\d]\w*)|(\d+)|([~+:*()\-|]))")
_HINT = "a formula is written with names of columns, +, :, * and C(), as in"


@dataclass(frozen=True)
class Factor:
    """A column of a formula; `categorical` if it was written as ``C(name)``."""

    name: str
    categorical: bool = False


@dataclass(frozen=True)
class Formula:
    """A parsed formula."""

    outcome: str  # name of the column
    # without the intercept, each once: one factor, or the factors of an interaction
    terms: tuple[tuple[Factor, ...], ...]
    within: str | None = None  # the privacy unit within which deviations from means are used


class FormulaParser:
    """Parses a formula; `example` is one with the analyst's columns, for messages."""

    def __init__(self, text: str, example: str) -> None:
        self._text, self._example = text, example
        self._symbols = self._symbolised()
        self._at = 0

    def _symbolised(self) -> list[str]:
        if len(self._text) > MAX_LENGTH:
            raise PlanError(
                f"regress: the formula has {len(self._text):,} characters; at most {MAX_LENGTH:,} are allowed"
            )
        symbols, at = [], 0
        text = self._text.rstrip()
        while at < len(text):
            match = _SYMBOL.match(text, at)
            if match is None:
                if text[at] == ".":
                    self._refuse("functions are not offered; compute the column first, as in df.assign(new=...)")
                self._refuse(f"{text[at:].strip()[:20]!r} is not part of a formula")
            symbols.append(match[0].strip())
            at = match.end()
        return symbols

    def formula(self) -> Formula:
        """The whole text as a formula."""
        outcome = self._factor()
        if outcome is None or outcome.categorical:
            self._refuse("the outcome must be the name of a column")
        self._expect("~")
        terms: dict[frozenset[Factor], tuple[Factor, ...]] = {}
        while True:
            for term in self._product():
                terms.setdefault(frozenset(term), term)
            if self._peek() == "-":
                self._refuse("- is not offered; leave the term out; the intercept is always included")
            if self._peek() in (None, "|"):
                break
            self._expect("+")
        if not terms:
            self._refuse("there is no term on the right side of ~")
        # Main effects first, as in the answers of other libraries.
        return Formula(outcome.name, tuple(sorted(terms.values(), key=len)), self._within())

    def _within(self) -> str | None:
        if self._peek() is None:
            return None
        self._expect("|")
        unit = self._factor()
        if unit is None or unit.categorical or self._peek() is not None:
            self._refuse("| is followed by the name of the privacy unit, at the end")
        return unit.name

    def _product(self) -> list[tuple[Factor, ...]]:
        parts = [self._interaction()]
        while self._peek() == "*":
            self._at += 1
            parts.append(self._interaction())
        if len(parts) > 6:
            self._refuse("at most 6 factors can be joined by *")
        products = []
        for size in range(1, len(parts) + 1):
            for chosen in combinations(parts, size):
                product = tuple(dict.fromkeys(factor for part in chosen for factor in part))
                if product:
                    products.append(product)
        return products

    def _interaction(self) -> tuple[Factor, ...]:
        """The factors of an interaction; empty for the intercept."""
        factors = [self._factor()]
        while self._peek() == ":":
            self._at += 1
            factors.append(self._factor())
        return tuple(dict.fromkeys(factor for factor in factors if factor is not None))

    def _factor(self) -> Factor | None:
        symbol = self._peek()
        if symbol is None:
            self._refuse("it ends where the name of a column is expected")
        self._at += 1
        if symbol == "1":
            return None
        if symbol == "0":
            self._refuse("the intercept is always included; leave out 0")
        if symbol[0] == "`":
            return Factor(symbol[1:-1])
        if not symbol.isidentifier():
            self._refuse(f"the name of a column is expected instead of {symbol!r}")
        if self._peek() != "(":
            return Factor(symbol)
        if symbol != "C":
            self._refuse(f"{symbol}(...) is not offered; compute the column first, as in df.assign(new=...)")
        self._at += 1
        inner = self._factor()
        if inner is None:
            self._refuse("C() takes the name of a column")
        self._expect(")")
        return Factor(inner.name, categorical=True)

    def _peek(self) -> str | None:
        return self._symbols[self._at] if self._at < len(self._symbols) else None

    def _expect(self, symbol: str) -> None:
        if self._peek() != symbol:
            self._refuse(f"{symbol!r} is expected {f'before {self._peek()!r}' if self._peek() else 'at the end'}")
        self._at += 1

    def _refuse(self, fault: str) -> NoReturn:
        raise PlanError(f"regress: {self._text!r}: {fault}; {_HINT} {self._example!r}")


# --- models and measurements of regressions on the columns of a view --------------------------------------------------


MAX_TERMS = 60
"""Largest number of terms of a formula, and of values of a category in one: each pair of terms is measured."""


def model_of(
    outcome: Expression, on: list[Expression], family: object, view: TableView
) -> tuple[RegressionModel, tuple[str, ...]]:
    """A checked model, and the names of its terms: the intercept first, then numbers, then categories."""
    if family not in FAMILIES:
        raise PlanError(f"fit: family must be one of {', '.join(map(repr, FAMILIES))}; got {family!r}")
    if not on:
        raise PlanError("fit: on= must name at least one column; got none")
    kinds = {node: dtype_of(node, view.schema) for node in on}
    numbers = tuple(node for node in on if not isinstance(kinds[node], Categorical | Boolean))
    categories = tuple(node for node in on if isinstance(kinds[node], Categorical | Boolean))
    outcome = outcome if family in ("logistic", "multinomial") else as_number(outcome, view.schema)
    model = RegressionModel(family, outcome, numbers, categories)
    design(model, view.schema)
    terms = [term for node in (*numbers, *categories) for term in _terms(node, view)]
    return model, ("intercept", *terms)


def regression_of(
    nodes: list[Expression],
    view: TableView,
    *,
    categorical: frozenset[Expression] = frozenset(),
    names: Mapping[Expression, str] | None = None,
    weights: Expression | None = None,
) -> tuple[Moments, MomentsView]:
    """Least squares of the first column on the others, from their second moments.

    `categorical` are columns of whole numbers that are used as categories; `names` has the names of terms that are not
    columns of the view.
    """
    if len(nodes) < 2 or len(set(nodes)) != len(nodes):
        raise PlanError(
            "regress: on= must name at least one column, and a column can occur only once, as the outcome or in on="
        )
    outcome, on = as_number(nodes[0], view.schema), nodes[1:]
    categories = [
        node for node in on if node in categorical or isinstance(dtype_of(node, view.schema), Categorical | Boolean)
    ]
    numbers = [outcome, *(node for node in on if node not in categories)]
    labels = (view.name_of(outcome), *(term for node in on for term in _terms(node, view, categorical, names or {})))
    # Sorted, so that correlations and other regressions of the same columns share the measurement.
    columns, indicators = tuple(sorted(numbers, key=words)), tuple(sorted(categories, key=words))
    indices = tuple((*columns, *indicators).index(node) for node in (outcome, *on))
    return Moments(columns, indicators, weights), MomentsView("regression", indices, labels)


def query_of_formula(text: str, view: TableView, weights: Expression | None = None) -> Query:
    """The regression that a formula describes, in the grammar of the module's docstring."""
    shown = examples(view)
    formula = FormulaParser(text, f"{shown['number_name'][1:-1]} ~ {shown['number2_name'][1:-1]}").formula()
    unit = formula.within
    if unit is None:
        return view.query(*_regression_of(formula, view, weights))
    if weights is not None:
        raise PlanError(
            "regress: weights are not offered with fixed effects, whose deviations are from means without weights; "
            "leave out one of them"
        )
    numbers, names = _numbers_of(formula, view)
    if unit != view.unit:
        own = "in this session each row is a unit" if view.unit is None else f"write | {view.unit}"
        raise PlanError(f"regress: fixed effects are those of the privacy unit; got | {unit}; {own}")
    if view.max_rows is None:
        raise PlanError("regress: fixed effects need a session with max_rows_per_unit=")
    return view.query(DeviationProducts(tuple(numbers), view.max_rows), SlopesView(tuple(names), unit))


def _numbers_of(formula: Formula, view: TableView) -> tuple[list[Expression], list[str]]:
    """The outcome and the terms as numbers, and their names: a category is an indicator of each value but the first."""
    numbers, names = [as_number(view.column(formula.outcome), view.schema)], [formula.outcome]
    main = {factor.name: factor for term in formula.terms for factor in term if len(term) == 1}
    for term in formula.terms:
        for name, node in islice(interaction_of(term, view, main), MAX_TERMS):
            numbers.append(node)
            names.append(name)
    if len(numbers) > MAX_TERMS or len(set(numbers)) != len(numbers):
        raise PlanError(f"regress: the formula must have at most {MAX_TERMS} terms, each once; it has others")
    return numbers, names


def _regression_of(formula: Formula, view: TableView, weights: Expression | None) -> tuple[Moments, MomentsView]:
    main = {factor.name: factor for term in formula.terms for factor in term if len(term) == 1}
    nodes, categorical, names = [view.column(formula.outcome)], set(), {}
    for term in formula.terms:
        if len(term) == 1:
            nodes.append(view.column(term[0].name))
            if term[0].categorical:
                check_category(nodes[-1], view)
                if not isinstance(dtype_of(nodes[-1], view.schema), Categorical | Boolean):
                    categorical.add(nodes[-1])
            continue
        for name, node in islice(interaction_of(term, view, main), MAX_TERMS):
            nodes.append(node)
            names[node] = name
        if len(nodes) > MAX_TERMS:
            raise PlanError(f"regress: the formula has more than {MAX_TERMS} terms; leave out interactions")
    return regression_of(nodes, view, categorical=frozenset(categorical), names=names, weights=weights)


def interaction_of(
    term: tuple[Factor, ...], view: TableView, main: Mapping[str, Factor]
) -> Iterator[tuple[str, Expression]]:
    """The products of an interaction, with their names: numbers as they are, categories as indicators.

    Refuses categories or conditions unless each column of the interaction is a term too: without these terms the
    indicators would have another meaning.
    """
    sides: list[list[tuple[str, Expression]]] = []
    for factor in term:
        node = view.column(factor.name)
        kind = dtype_of(node, view.schema)
        if isinstance(kind, Categorical) or factor.categorical:
            check_category(node, view)
            values = (public_keys_of(node, view.schema) or ())[1:]
            sides.append([(f"{factor.name} == {value!r}", _indicator(node, value)) for value in values])
        else:
            sides.append([(factor.name, as_number(node, view.schema))])
            if not isinstance(kind, Boolean):
                continue
        if any(other.name not in main for other in term):
            shown = "*".join(f"C({one.name})" if one.categorical else one.name for one in term)
            raise PlanError(
                f"regress: an interaction with the categories of {factor.name!r} needs each of its columns as a term "
                f"too; write {shown} instead of {shown.replace('*', ':')}"
            )
    for combination in product(*sides):
        node = reduce(lambda left, right: Arithmetic("*", left, right), (inner for _, inner in combination))
        yield ":".join(name for name, _ in combination), node


def _indicator(node: Expression, value: Key) -> Expression:
    return AsNumber(Compare("==", node, Literal(value)))


def check_category(node: Expression, view: TableView) -> None:
    """Refuse a column without a short list of public values."""
    values = public_keys_of(node, view.schema)
    if values is None or len(values) > MAX_TERMS:
        count = "a private set of" if values is None else f"{len(values):,}"
        raise PlanError(
            f"regress: C({view.name_of(node)}) has {count} values; at most {MAX_TERMS} public ones are allowed; "
            "group them first, with dpnb.cut or a list of declared categories"
        )


def _terms(
    node: Expression,
    view: TableView,
    categorical: frozenset[Expression] = frozenset(),
    names: Mapping[Expression, str] | None = None,
) -> list[str]:
    """The names of the terms of one column: one for each category except the first."""
    name, kind = (names or {}).get(node) or view.name_of(node), dtype_of(node, view.schema)
    if isinstance(kind, Categorical) or node in categorical:
        return [f"{name} == {value!r}" for value in (public_keys_of(node, view.schema) or ())[1:]]
    return [name]
