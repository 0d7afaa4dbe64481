"""pandas-like verbs that build plans: lazy, and without access to any row."""

from dpnb.frame.columns.bins import cut
from dpnb.frame.columns.series import Series
from dpnb.frame.frame import Frame
from dpnb.frame.groupby import GroupBy
from dpnb.frame.reshape import crosstab, get_dummies

__all__ = ["Frame", "GroupBy", "Series", "crosstab", "cut", "get_dummies"]
