"""The library function that received a private table or column, so that the refusal can name its counterpart here.

Also the assignment to a table that has no name, which would be lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FrameType

from dpnb._plan.suggestions import calling_function
from dpnb.errors import PlanError
from dpnb.frame.compatibility.remedies import CUT

_FUNCTIONS: dict[tuple[str, str], str] = {
    ("pandas", "cut"): CUT,
    ("pandas", "qcut"): "dpnb.cut({number}, [...]) with public edges, or {number}.quantile([0.25, 0.5, 0.75])",
    ("pandas", "crosstab"): "dpnb.crosstab({category}, {category2})",
    ("pandas", "pivot_table"): "df.pivot_table(index={category_name}, values={number_name})",
    ("pandas", "get_dummies"): "dpnb.get_dummies({category})",
    ("pandas", "concat"): "df.merge(other, on=...): tables of a session are joined, not stacked",
    ("pandas", "merge"): "df.merge(public_table, on={category_name})",
    ("pandas", "isna"): "{self}.isna()",
    ("pandas", "isnull"): "{self}.isna()",
    ("pandas", "notna"): "{self}.notna()",
    ("pandas", "to_datetime"): "the column itself: dates are declared by the curator; session.schema shows them",
    ("pandas", "unique"): "{category}.unique(), the list of declared values, or {category}.value_counts()",
    ("pandas", "factorize"): "{category}.value_counts(), or {category}.map({{...}}) for codes of your choice",
    ("pandas", "melt"): "the columns where they are needed, as in {category}.value_counts() or {number}.mean()",
    ("pandas", "scatter_matrix"): "df.corr(), whose answer is the matrix of correlations",
    ("pandas", "to_numeric"): "{self}.astype(float)",
}
"""What to write instead of a function, by the library and the function's name."""

_PLOTS = "{number}.histogram(20).release(share=0.05).plot(), which draws noisy counts"
_FORMULA = (
    "df.regress('outcome ~ x1 + x2'), with your columns, or family='logistic' for a condition, or weights=... for WLS; "
    "a weighted mean is {number}.mean(weights=...)"
)
_REGRESSION = "df.regress({number_name}, on=[{number2_name}]), or df.fit(...) for other families"
_SURVIVAL = (
    "df.survival({number_name}, {mask}, by={category2}).release(share=0.05), with your time and event; its .test() is "
    "the log-rank test"
)
_LIBRARIES: dict[str, str] = {
    "matplotlib": _PLOTS,
    "seaborn": _PLOTS,
    "plotly": _PLOTS,
    **dict.fromkeys(["statsmodels", "patsy", "formulaic"], _FORMULA),
    "sklearn": _REGRESSION,
    "lifelines": _SURVIVAL,
    "scipy": "{number}.corr({number2}), {number}.std() or {number}.quantile([0.25, 0.75]); answers have .test(...)",
}
"""What to write instead of any function of a library."""

_MEANS = "df.groupby({category_name})[{number_name}].mean(population=True).release(share=0.05).test()"
_MEDIANS = "df.groupby({category_name})[{number_name}].median().release(share=0.05).test()"
_PAIRS = "({number} - {number2}).mean(population=True).release(share=0.05).test(0)"
_TABLE = "dpnb.crosstab({category}, {category2}).release(share=0.05).test()"
_SHARES = "{condition}.groupby({category2}).mean().release(share=0.05).test()"
_CORRELATION = "{number}.corr({number2}).release(share=0.05).population(share=0.05).test(0)"
_SPREADS = "df.groupby({category_name})[{number_name}].var().release(share=0.05).population(share=0.05).test()"
_TESTS: dict[str, str] = {
    **dict.fromkeys(["ttest_ind", "f_oneway", "anova_oneway", "ztest", "alexandergovern", "tukey_hsd"], _MEANS),
    **dict.fromkeys(["mannwhitneyu", "kruskal", "median_test", "ranksums", "brunnermunzel", "mood"], _MEDIANS),
    **dict.fromkeys(["ttest_rel", "wilcoxon"], _PAIRS),
    "ttest_1samp": "{number}.mean(population=True).release(share=0.05).test(0), with your value for 0",
    **dict.fromkeys(["chi2_contingency", "fisher_exact", "barnard_exact", "boschloo_exact"], _TABLE),
    **dict.fromkeys(["chisquare", "power_divergence"], "{category}.value_counts().release(share=0.05).test()"),
    **dict.fromkeys(["proportions_ztest", "proportions_chisquare", "test_proportions_2indep"], _SHARES),
    **dict.fromkeys(["binomtest", "binom_test"], "{condition}.mean().release(share=0.05).test(0.5)"),
    **dict.fromkeys(["pearsonr", "spearmanr", "kendalltau"], _CORRELATION),
    **dict.fromkeys(["logrank", "ecdf", "SurvfuncRight", "survdiff"], _SURVIVAL),
    "linregress": "df.regress({number_name}, on=[{number2_name}], population=True).release(share=0.05).test()",
    **dict.fromkeys(["levene", "bartlett", "fligner"], _SPREADS),
}
"""What to write instead of a test of scipy or statsmodels, by its name."""

_PROTOCOLS = ("__dataframe__", "__arrow_c_stream__", "__arrow_c_array__", "toPandas", "index", "_get_numeric_data")
"""Attributes by which a library asks for rows."""

_SUMMARIES = "{number}.mean(), {number}.quantile([0.1, 0.9]) or {category}.value_counts()"


def refusal_for_caller(examples: Mapping[str, str]) -> None:
    """Refuse by name if a library's function has received a private object; return if no library is calling.

    `examples` are the columns of `dpnb.frame.compatibility.examples.examples`.  The refusal is a `PlanError`, not an
    `AttributeError`, which the library might take for a missing attribute.
    """
    called = calling_function()
    if called is None:
        return
    library, function = called
    test = _TESTS.get(function) if library in ("scipy", "statsmodels") else None
    remedy = _FUNCTIONS.get(called) or test or _LIBRARIES.get(library, _SUMMARIES)
    if remedy is _REGRESSION and examples["number"] == examples["number2"]:  # a view of the explaining columns alone
        remedy = _REGRESSION.replace("{number_name}", "outcome").replace("{number2_name}", "{number_name}")
    name = f"{library}.{function}" if called in _FUNCTIONS or test else library
    raise PlanError(f"{name}: needs rows, which a private table never shows; use {remedy.format_map(examples)}")


def refuse_request_for_rows(attribute: str, examples: Callable[[], Mapping[str, str]]) -> None:
    """Refuse by name if a library looks up an attribute to find out whether an object has rows.

    A missing attribute would make the library fail with an error of its own, which names no remedy.
    """
    # pandas looks up `_typ` to recognise its own classes, often on objects that it then leaves alone.
    # lifelines asks for the shape of a table first, which others are refused with a remedy of its own.
    called = calling_function() if attribute in ("_typ", "shape") else None
    is_asked = called is not None and (called in _FUNCTIONS if attribute == "_typ" else called[0] == "lifelines")
    if attribute in _PROTOCOLS or is_asked:
        refusal_for_caller(examples())


# --- assignments to a table without a name ----------------------------------------------------------------------------


class _Assigned:
    """An object that notes how many references there are to it while it is assigned to."""

    references = 0

    def __setitem__(self, key: object, value: object) -> None:
        _Assigned.references = sys.getrefcount(self)


_Assigned()[0] = None  # the number for an object that nothing else refers to


def is_temporary(references: int, assigned: object, caller: FrameType) -> bool:
    """Whether a statement such as ``session.frame["x"] = ...`` changes an object that is gone after it.

    `references` are those that its `__setitem__` counts, and `caller` is the frame that runs the statement: from Python
    3.14 the reference of a local variable is not counted.
    """
    return references <= _Assigned.references and all(one is not assigned for one in caller.f_locals.values())
