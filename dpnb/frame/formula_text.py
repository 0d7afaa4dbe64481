"""Formulas of regressions as text, ``"wage ~ school + C(union) + school:exper"``: symbols and a small grammar.

    formula     = name "~" product ("+" product)*
    product     = interaction ("*" interaction)*
    interaction = factor (":" factor)*
    factor      = name | "C(" name ")" | "1"

Nothing is evaluated: a name is a column of the view.  A name that is not an identifier is written in backticks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from typing import NoReturn

from dpnb.errors import PlanError

MAX_LENGTH = 10_000
"""Largest number of characters of a formula."""

_SYMBOL = re.compile(r"\s*(?:(`[^`]+`)|([^\W\d]\w*)|(\d+)|([~+:*()\-]))")
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


def is_formula(text: object) -> bool:
    """Whether an argument is a formula rather than the name of a column."""
    return isinstance(text, str) and "~" in text


def parsed_formula(text: str, example: str) -> Formula:
    """Parse a formula; `example` is one with the analyst's columns, for messages."""
    return _Parser(text, example).formula()


class _Parser:
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
            if self._peek() is None:
                break
            self._expect("+")
        if not terms:
            self._refuse("there is no term on the right side of ~")
        # Main effects first, as in the answers of other libraries.
        return Formula(outcome.name, tuple(sorted(terms.values(), key=len)))

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
