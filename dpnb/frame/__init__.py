"""pandas-like verbs that build plans: lazy, and without access to any row.

``view``           the rows and columns that are selected; shared by the next three
``frame``          a view of a private table
``groupby``        a view split into groups; ``grouping`` the methods of frames that split them, by values or periods
``columns/``       one column of a view, or an expression of its columns, with its aggregations
``columnwise``     aggregations of all numeric columns of a frame or its groups
``layout``         methods of frames that choose, rename and convert columns
``selection``      ``df.loc``
``query_text``     ``df.query`` and ``df.eval``: conditions as text, parsed and never evaluated
``reshape``        two-way tables and indicators
``regressions``    least squares and models fitted by gradient descent; ``formula`` parses ``"y ~ x1 + C(x2)"``
``lookup``         joins with tables of the session and with public tables
``coerce``         validation of the analyst's arguments: quantile levels, names, the columns of ``agg``
``studies/``        methods for whole studies: survival
``compatibility/``  what pandas and numpy have and a private table has differently, or not
"""

from dpnb.frame.columns.bins import cut
from dpnb.frame.columns.series import Series
from dpnb.frame.frame import Frame
from dpnb.frame.groupby import GroupBy
from dpnb.frame.reshape import crosstab, get_dummies

__all__ = ["Frame", "GroupBy", "Series", "crosstab", "cut", "get_dummies"]
