"""The names of the numbers of an answer."""

from __future__ import annotations

from dpnb._plan.measurements import AnyView, CoefficientsView, ColumnsView, MomentsView, QuantilesView
from dpnb._plan.schema import Key


def outputs_of(view: AnyView) -> tuple[str, tuple[Key, ...]] | None:
    """Name and labels of the numbers of each group; None for a single number without a name."""
    match view:
        case ColumnsView(columns):
            return "statistic", tuple(named.name for named in columns)
        case QuantilesView(at, single=False):
            return "quantile", at
        case MomentsView("regression"):
            return "term", ("intercept", *view.labels[1:])
        case CoefficientsView(terms, classes, chains):
            one = [f"{key}: {term}" for key in classes for term in terms] if classes else list(terms)
            return "term", tuple(
                f"chain {n}: {name}" if chains > 1 else name for n in range(1, chains + 1) for name in one
            )
    return None
