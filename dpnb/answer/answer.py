"""A released answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpnb.accounting.losses import GDP
from dpnb.answer import faces
from dpnb.answer.estimate import Estimate
from dpnb.errors import RequestError
from dpnb.query.plan import Plan
from dpnb.query.schema import Key

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Estimates with intervals, and what they cost.

    Parameters
    ----------
    plan : Plan
        What was asked.
    keys : tuple
        Group keys; empty for a single number.
    cells : Estimate
        Arrays of shape (groups,), or (1,).
    confidence : float
        Of each interval by itself.
    cost : GDP
        What this request was charged when it was first made; 0 if it was known already.
    cost_share : float
        The same as a share of the whole budget, rounded up.
    known : GDP
        How well the question is known with this answer, earlier looks included.
    looks : int
        Measurements that are combined in it.
    time : str
        When it was first asked and paid; UTC.
    notice : str or None
        Says loudly if the answer is not real or not private.
    refine : callable
        ``answer.refine(within=0.1)`` or any other target: the same question, known better, for the difference in cost.
    """

    plan: Plan
    keys: tuple[Key, ...]
    cells: Estimate
    confidence: float
    cost: GDP
    cost_share: float
    known: GDP
    looks: int
    time: str
    notice: str | None
    refine: Callable[..., Answer]

    @property
    def estimate(self) -> float | pd.Series:
        """A float, or a pandas Series by group."""
        return self._by_group("estimate") if self.plan.by else float(self.cells.value[0])

    @property
    def noise_scale(self) -> float | pd.Series:
        """Standard deviation of the noise in the estimate, in its units; of a mean, approximately."""
        return self._by_group("noise_scale") if self.plan.by else float(self.cells.noise_scale[0])

    @property
    def interval(self) -> tuple[float, float] | pd.DataFrame:
        """``(low, high)``, or a pandas DataFrame with these columns by group."""
        if self.plan.by:
            return self.to_pandas()[["low", "high"]]
        return float(self.cells.low[0]), float(self.cells.high[0])

    def to_pandas(self) -> pd.DataFrame:
        """Estimate, low, high and noise_scale; one row a group, or a single row."""
        import pandas as pd  # imported when first used

        columns = {
            "estimate": self.cells.value,
            "low": self.cells.low,
            "high": self.cells.high,
            "noise_scale": self.cells.noise_scale,
        }
        return pd.DataFrame({name: values.copy() for name, values in columns.items()}, index=self._index())

    def _index(self) -> pd.Index:
        import pandas as pd

        return pd.Index(list(self.keys), name=self.plan.by[0]) if self.plan.by else pd.RangeIndex(1)

    def _by_group(self, name: str) -> pd.Series:
        return self.to_pandas()[name]

    def __float__(self) -> float:
        if self.plan.by:
            raise RequestError(f"{self.plan.words}: an answer with groups is not one number; use .estimate")
        return float(self.cells.value[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answer) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        arrays = (self.cells.value, self.cells.low, self.cells.high, self.cells.noise_scale)
        return self.plan, self.confidence, self.cost, self.known, self.time, *(array.tobytes() for array in arrays)

    def __repr__(self) -> str:
        return faces.answer_text(self)

    def _repr_html_(self) -> str:
        return faces.answer_html(self)
