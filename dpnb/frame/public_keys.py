"""The keys of groups as an analyst gives them: a list, a public table, or an answer."""

from __future__ import annotations

from dpnb._plan.plan import GroupLevel
from dpnb._plan.schema import Key
from dpnb.errors import PlanError
from dpnb.frame.column_expr import listed_keys
from dpnb.frame.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView


def public_keys(view: TableView, by: tuple[GroupLevel, ...], keys: object) -> tuple[tuple[Key, ...], ...] | None:
    """The keys of groups, checked to be public and among the groups; None for all of them."""
    if isinstance(keys, UnsupportedOperations):
        raise PlanError(
            f"keys: {keys!r} is private, so its values are never shown; give a list of public keys, a public table, or "
            "the answer of .discover()"
        )
    return listed_keys(view, by, keys)
