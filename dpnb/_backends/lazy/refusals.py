"""Which expressions are refused because engines round them differently."""

from __future__ import annotations

from dpnb._plan.expressions.dtypes import Numeric
from dpnb._plan.expressions.nodes import Arithmetic, Literal, Node, arguments
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import words
from dpnb._plan.schema import Schema
from dpnb.errors import UnsupportedError


def refuse_expression(node: Node, schema: Schema, engine: str) -> None:
    """Refuse operations that engines round differently."""
    if isinstance(node, Arithmetic) and node.operator in ("//", "%") and node.right not in (Literal(1), Literal(1.0)):
        kind = dtype_of(node.left, schema)
        by = node.right.value if isinstance(node.right, Literal) else 0.5
        whole = isinstance(kind, Numeric) and kind.whole and float(by).is_integer()
        if not whole or kind.magnitude >= 2**52:  # type: ignore[union-attr]
            raise UnsupportedError(
                f"{words(node)}: on {engine} {node.operator} needs whole numbers on both sides, the left below 2**52, "
                "or 1 on the right: engines round other remainders differently; .round() both sides first, or add the "
                "column in the engine"
            )
    for inner in arguments(node):
        refuse_expression(inner, schema, engine)
