"""What to write instead of a library's function, with the columns that the analyst passed to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress

from dpnb._plan.expressions.dtypes import Categorical, Numeric
from dpnb._plan.expressions.nodes import Or, columns_of
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import as_code
from dpnb._plan.unreleased import did_you_mean
from dpnb.errors import DpnbError
from dpnb.frame.compatibility.calls import CUT, Call, Unwritten, own_name

SHOWN = ".release(share=0.05).plot()"
"""What draws a query."""

TESTED = ".release(share=0.05).test()"
"""What tests a hypothesis on the answer of a query."""


def is_known(call: Call) -> bool:
    """Whether there is a counterpart of this function, not only of its library."""
    names = (call.model, call.function)
    return any((call.library, name) in table for table in (_WRITERS, _EXAMPLES) for name in names if name)


def counterpart(call: Call, examples: Mapping[str, str]) -> str:
    """What to write instead of a function: with its arguments where they are known, otherwise an example."""
    writer = _WRITERS.get((call.library, call.model)) or _WRITERS.get((call.library, call.function))
    if writer is not None:
        with suppress(Unwritten, DpnbError, AttributeError, KeyError, TypeError, ValueError):
            return writer(call)
    example = _EXAMPLES.get((call.library, call.function)) or _EXAMPLES.get((call.library, ""), _SUMMARIES)
    return example.format_map(examples)


_SUMMARIES = "{number}.mean(), {number}.quantile([0.1, 0.9]) or {category}.value_counts()"
_DRAWN = "{number}.histogram(20)" + SHOWN + ", which draws noisy counts"
_FORMULA = (
    "df.regress('outcome ~ x1 + x2'), with your columns, or family='logistic' for a condition, or weights=... for WLS; "
    "a weighted mean is {number}.mean(weights=...)"
)
_MEANS = "df.groupby({category_name})[{number_name}].mean(population=True)" + TESTED
_MEDIANS = "df.groupby({category_name})[{number_name}].median()" + TESTED
_PAIRS = "({number} - {number2}).mean(population=True)" + TESTED[:-1] + "0)"
_SURVIVAL = (
    "df.survival({number_name}, {mask}, by={category2}).release(share=0.05), with your time and event; its .test() is "
    "the log-rank test"
)
_EXAMPLES: dict[tuple[str, str], str] = {
    ("pandas", "cut"): CUT,
    ("pandas", "qcut"): "dpnb.cut({number}, [...]) with public edges, or {number}.quantile([0.25, 0.5, 0.75])",
    ("pandas", "crosstab"): "dpnb.crosstab({category}, {category2})",
    ("pandas", "pivot_table"): "df.pivot_table(index={category_name}, values={number_name})",
    ("pandas", "get_dummies"): "dpnb.get_dummies({category})",
    ("pandas", "concat"): "df.merge(other, on=...): tables of a session are joined, not stacked",
    ("pandas", "merge"): "df.merge(public_table, on={category_name})",
    ("pandas", "unique"): "{category}.unique(), the list of declared values, or {category}.value_counts()",
    ("pandas", "factorize"): "{category}.value_counts(), or {category}.map({{...}}) for codes of your choice",
    ("pandas", "melt"): "the columns where they are needed, as in {category}.value_counts() or {number}.mean()",
    ("pandas", "scatter_matrix"): "df.corr(), whose answer is the matrix of correlations",
    ("matplotlib", ""): _DRAWN,
    ("seaborn", ""): _DRAWN,
    ("plotly", ""): _DRAWN,
    **{(name, ""): _FORMULA for name in ("statsmodels", "patsy", "formulaic")},
    ("lifelines", ""): _SURVIVAL,
    **{("statsmodels", name): _SURVIVAL for name in ("SurvfuncRight", "survdiff")},
    **{("scipy", name): _SURVIVAL for name in ("logrank", "ecdf")},
    ("sklearn", ""): "df.regress('outcome', on=[{number_name}]), or df.fit(...) for other families",
    ("scipy", ""): "{number}.corr({number2}) or {number}.quantile([0.25, 0.75]); answers have .test(...)",
    **{(library, name): text
       for library in ("scipy", "statsmodels")
       for name, text in {
           **dict.fromkeys(["ttest_ind", "f_oneway", "anova_oneway", "ztest", "alexandergovern", "tukey_hsd"], _MEANS),
           **dict.fromkeys(["mannwhitneyu", "kruskal", "median_test", "ranksums", "brunnermunzel", "mood"], _MEDIANS),
           **dict.fromkeys(["ttest_rel", "wilcoxon"], _PAIRS),
           "ttest_1samp": "{number}.mean(population=True)" + TESTED[:-1] + "0), with your value for 0",
           **dict.fromkeys(["chi2_contingency", "fisher_exact", "barnard_exact", "boschloo_exact"],
                           "dpnb.crosstab({category}, {category2})" + TESTED),
           **dict.fromkeys(["chisquare", "power_divergence"], "{category}.value_counts()" + TESTED),
           **dict.fromkeys(["proportions_ztest", "proportions_chisquare", "test_proportions_2indep"],
                           "{condition}.groupby({category2}).mean()" + TESTED),
           **dict.fromkeys(["binomtest", "binom_test"], "{condition}.mean()" + TESTED[:-1] + "0.5)"),
           **dict.fromkeys(["levene", "bartlett", "fligner"], "df.groupby({category_name})[{number_name}].var()"
                           ".release(share=0.05).population(share=0.05).test()"),
       }.items()},
}  # fmt: skip
"""What to write where the arguments are unknown, as templates for `dpnb.frame.compatibility.examples.examples`."""


# --- pandas -----------------------------------------------------------------------------------------------------------


def _method(template: str, *names: str) -> Callable[[Call], str]:
    """The writer of one expression with the first of some arguments."""
    return lambda call: template.format(call.code(*names))


def _bins(call: Call) -> str:
    return f"dpnb.cut({call.code('x')}, {call.code('bins')}{call.option('right', True)}{call.option('labels')})"


def _quantiles(call: Call) -> str:
    parts, column = call.value("q"), call.code("x")
    levels = (
        [round(at / parts, 3) for at in range(1, parts)] if isinstance(parts, int) else [q for q in parts if 0 < q < 1]
    )
    return f"dpnb.cut({column}, [...]) with public edges, for example the answer of {column}.quantile({levels})"


def _crosstab(call: Call) -> str:
    values = f", values={call.code('values')}" if call.arguments.get("values") is not None else ""
    options = call.option("aggfunc") + call.option("normalize", False) + call.option("margins", False)
    return f"dpnb.crosstab({call.code('index')}, {call.code('columns')}{values}{options})"


def _pivoted(call: Call) -> str:
    options = "".join(call.option(name) for name in ("index", "columns", "values"))
    return f"{call.selected(call.value('data'))}.pivot_table({options[2:]}{call.option('aggfunc', 'mean')})"


def _beside(call: Call) -> str:
    tables = call.value("objs")
    rows = {call.selected(one) for one in tables}
    if len(rows) == 1 and all(hasattr(one, "_node") for one in tables):
        return f"{rows.pop()}[{[own_name(one) for one in tables]!r}]"
    return f"{call.frame(tables[0])}.merge(other, on=...): tables of a session are joined, not stacked"


def _joined(call: Call) -> str:
    left, right = call.value("left"), call.value("right")
    other = call.frame(right) if hasattr(right, "_view") else "public_table"
    if hasattr(left, "_view") and hasattr(right, "_view") and left._view.source == right._view.source:
        return f"{call.frame(left)} alone, which has the columns of both"
    return f"{call.frame(left)}.merge({other}{call.option('on')}{call.option('how', 'inner')})"


# --- figures ----------------------------------------------------------------------------------------------------------


def _histogram(call: Call) -> str:
    column = call.column("x", "data", "data_frame", "y", "argument 0")
    if _hues(call):
        return _counts(call)
    if not isinstance(dtype_of(column._node, column._view.schema), Numeric):
        return f"{call.written(column)}.value_counts(){SHOWN}"
    bins = call.arguments.get("bins", call.arguments.get("nbins"))
    edges = bins if isinstance(bins, int | list) else 20
    return f"{call.written(column)}.histogram({edges}){SHOWN}, which draws noisy counts"


def _counts(call: Call) -> str:
    if keys := _hues(call):
        table = call.selected(call.column("x", "y", "names", "data", "data_frame"))
        return f"{table}.groupby([{', '.join([call.groups('x', 'y', 'names', 'data'), *keys])}]).size(){SHOWN}"
    return f"{call.written(call.column('x', 'y', 'names', 'data', 'data_frame'))}.value_counts(){SHOWN}"


def _hues(call: Call) -> list[str]:
    """The groups that a figure draws in colours or in panels of their own."""
    table = call.arguments.get("data", call.arguments.get("data_frame"))
    if table is None:
        return []
    names = ("hue", "color", "col", "row", "facet_col", "facet_row")  # a colour may also be one for all
    given = [name for name in names if isinstance(call.arguments.get(name), str) and call.arguments[name] in table]
    return list(dict.fromkeys(map(call.groups, given)))


def _grouped(call: Call, statistic: str) -> str:
    outcome = call.column("y", "height", "values", "argument 1")
    keys = [call.groups("x", "names", "argument 0"), *_hues(call)]
    by = keys[0] if len(keys) == 1 else f"[{', '.join(keys)}]"
    return f"{call.selected(outcome)}.groupby({by})[{own_name(outcome)!r}].{statistic}{SHOWN}"


def _means(call: Call) -> str:
    if call.arguments.keys() & {"argument 0"} and "argument 1" not in call.arguments:
        return _histogram(call)
    return _grouped(call, "mean()")


def _spread(call: Call) -> str:
    drawn = call.arguments.get("kind")  # of catplot
    if drawn in ("bar", "point"):
        return _means(call)
    if drawn == "count":
        return _counts(call)
    if call.arguments.get("x") is not None and call.arguments.get("y") is not None:
        return _grouped(call, "quantile([0.25, 0.5, 0.75])")
    return f"{call.written(call.column('x', 'y', 'data', 'data_frame'))}.quantile([0.25, 0.5, 0.75]){SHOWN}"


def _correlations(call: Call) -> str:
    table = call.value("data", "data_frame", "frame")
    columns = call.selected(table) if getattr(table._view, "assigned", table) is None else call.written(table)
    return f"{columns}.corr(), whose answer is the matrix of correlations"


# --- regressions and tests --------------------------------------------------------------------------------------------


def _family(call: Call) -> str:
    """``, family=...`` for the class of a model, or for the family that was passed to it."""
    made = type(call.arguments.get("family")).__name__
    family = {"Logit": "logistic", "LogisticRegression": "logistic", "Probit": "logistic", "Binomial": "logistic",
              "Poisson": "poisson", "PoissonRegressor": "poisson"}  # fmt: skip
    found = family.get(call.model) or family.get(made)
    return f", family={found!r}" if found else ""


def _errors(call: Call) -> str:
    """What follows the terms, so that the answer has the errors that a class of statsmodels computes."""
    if call.model == "MixedLM" and "groups" in call.arguments:
        return ", population=True), which has no random effects: standard errors are clustered by the privacy unit"
    if call.model == "GEE":
        return ", population=True), clustered by the privacy unit, and with family='logistic' for a condition"
    return ")" if _family(call) else "), with population=True for standard errors and p-values"


def _weights(call: Call) -> str:
    """``, weights=...`` for weighted least squares."""
    weights = call.arguments.get("weights")
    return f", weights={own_name(weights)!r}" if hasattr(weights, "_node") else ""


_TRANSFORMED = re.compile(r"(?:np\.|numpy\.)(\w+)\((\w+)\)|I\((\w+)\s*\*\*\s*(\d)\)")
"""A function of a column, or a power, in a formula."""


def _formula(call: Call) -> str:
    table, text, made = call.value("data"), call.value("formula"), {}

    def column(match: re.Match[str]) -> str:
        function, of, base, power = match.groups()
        name = f"{function}_{of}" if function else f"{base}_{power}"
        made[name] = f"np.{function}(df[{of!r}])" if function else f"df[{base!r}] ** {power}"
        return name

    text, columns = _TRANSFORMED.sub(column, text), table._view.columns
    frame = call.selected(table)
    added = ", ".join(f"{name}={code.replace('df[', f'{frame}[')}" for name, code in made.items())
    frame += f".assign({added})" if made else ""
    names = [name for name in dict.fromkeys(re.findall(r"[^\W\d]\w*", text)) if name not in (*columns, *made, "C")]
    missing = "".join(f"; {name!r} is not a column{did_you_mean(name, columns).replace(';', ',')}" for name in names)
    return f"{frame}.regress({call.written(text)}{_family(call)}{_weights(call)}{_errors(call)}{missing}"


def _regression(call: Call) -> str:
    outcome, on = call.value("endog", "y"), call.value("exog", "X", "x")
    names = [own_name(on)] if hasattr(on, "_node") else list(on._view.columns)
    return f"{call.selected(outcome)}.regress({own_name(outcome)!r}, on={names!r}{_family(call)}{_weights(call)})"


def _intercept(call: Call) -> str:
    table = call.value("data")
    names = [own_name(table)] if hasattr(table, "_node") else list(table._view.columns)
    return f"{call.selected(table)}.regress('outcome', on={names!r}), which adds the intercept"


_FIRST, _SECOND = ("a", "x", "x1", "rvs", "sample1", "argument 0"), ("b", "y", "x2", "sample2", "argument 1")


def _correlation(call: Call) -> str:
    return f"{call.code(*_FIRST)}.corr({call.code(*_SECOND)}).release(share=0.05).population(share=0.05).test(0)"


def _samples(statistic: str) -> Callable[[Call], str]:
    """The writer of a test of two samples: one column in groups, or two columns of the same rows."""

    def written(call: Call) -> str:
        one, other = call.value(*_FIRST), call.value(*_SECOND)
        if one._node != other._node:
            return f"({call.written(one)} - {call.written(other)}).{statistic}{TESTED[:-1]}0)"
        (by,) = columns_of(one._view.where) & columns_of(other._view.where)
        return f"{call.frame(one)}.groupby({by!r})[{own_name(one)!r}].{statistic}{TESTED}"

    return written


def _paired(call: Call) -> str:
    """The test of two columns of the same rows, or of the changes of each unit between two groups of its rows."""
    one, other = call.value(*_FIRST), call.value(*_SECOND)
    unit, rows = one._view.unit, [side._view.where for side in (one, other)]
    if unit is None or None in rows or one._node != other._node:
        return _samples("mean(population=True)")(call)
    (by,) = columns_of(rows[0]) & columns_of(rows[1])
    name = call.frame(one)
    return (
        f"{name}[{as_code(Or(*rows), name)}].sort_values({by!r}).groupby({unit!r})[{own_name(one)!r}].diff()"
        f".mean(population=True){TESTED[:-1]}0), the changes within each {unit}"
    )


def _table_of_two(call: Call) -> str:
    """A contingency table of two columns of a table, and their odds ratio."""
    table = call.value("data", "table")
    one, other = list(table._view.columns)
    name = call.selected(table)
    return (
        f"dpnb.crosstab({name}[{one!r}], {name}[{other!r}]){TESTED}; the odds ratio is np.exp({name}.regress"
        f"('{other} ~ {one}', family='logistic').release(share=0.05))"
    )


def _in_groups(call: Call) -> str:
    outcome, by = call.value("endog", "data"), call.value("groups", "group_labels")
    return f"{call.selected(outcome)}.groupby({own_name(by)!r})[{own_name(outcome)!r}].mean(population=True){TESTED}"


def _but(writer: Callable[[Call], str], remark: str) -> Callable[[Call], str]:
    """The writer of a line with a remark on what it does otherwise."""
    return lambda call: f"{writer(call)}, {remark}"


def _one_sample(call: Call) -> str:
    column, value = call.code(*_FIRST), call.arguments.get("popmean", 0)
    return f"{column}.mean(population=True).release(share=0.05).test({value!r})"


def _survival(call: Call) -> str:
    """Of a fitted curve, from two columns or from a table and their names."""
    time = call.value("durations", "duration_col", "time")
    if isinstance(time, str):
        table, event = call.selected(call.value("df")), call.code("event_col", "status")
        return f"{table}.survival({time!r}, {event}).release(share=0.05), by groups with by=..., instead of a model"
    event = call.value("event_observed", "status")
    kind = dtype_of(event._node, event._view.schema)
    if isinstance(kind, Categorical):
        named = f"{call.written(event)} == {kind.values[-1]!r}"
    else:
        named = repr(own_name(event)) if event._node in event._view.columns.values() else call.written(event)
    return f"{call.selected(time)}.survival({own_name(time)!r}, {named}).release(share=0.05)"


_WRITERS: dict[tuple[str, str], Callable[[Call], str]] = {
    **{("pandas", name): writer for name, writer in {
        "cut": _bins, "qcut": _quantiles, "crosstab": _crosstab, "pivot_table": _pivoted, "concat": _beside,
        "merge": _joined, "get_dummies": _method("dpnb.get_dummies({0})", "data"),
        "isna": _method("{0}.isna()", "obj"), "isnull": _method("{0}.isna()", "obj"),
        "notna": _method("{0}.notna()", "obj"), "notnull": _method("{0}.notna()", "obj"),
        "to_datetime": _method("{0} itself: dates are declared by the curator; session.schema shows them", "arg"),
        "to_numeric": _method("{0}.astype(float)", "arg"),
        "unique": _method("{0}.unique(), the list of declared values, or {0}.value_counts()", "values"),
        "factorize": _method("{0}.value_counts(), or {0}.map({{...}}) for codes of your choice", "values"),
        "scatter_matrix": _correlations,
    }.items()},
    **{("matplotlib", name): writer for name, writer in {
        "hist": _histogram, "scatter": _means, "plot": _means, "bar": _means, "barh": _means, "step": _means,
        "hexbin": _means, "hist2d": _means, "boxplot": _spread, "violinplot": _spread, "pie": _counts,
    }.items()},
    **{("seaborn", name): writer for name, writer in {
        **dict.fromkeys(["histplot", "kdeplot", "displot", "ecdfplot", "rugplot"], _histogram),
        **dict.fromkeys(["barplot", "pointplot", "lineplot", "scatterplot", "regplot", "lmplot", "relplot", "jointplot",
                         "residplot"], _means),
        **dict.fromkeys(["boxplot", "boxenplot", "violinplot", "stripplot", "swarmplot", "catplot"], _spread),
        "countplot": _counts, "pairplot": _correlations, "heatmap": _correlations,
    }.items()},
    **{("plotly", name): writer for name, writer in {
        **dict.fromkeys(["histogram", "ecdf"], _histogram),
        **dict.fromkeys(["bar", "line", "scatter", "area", "density_heatmap", "density_contour"], _means),
        **dict.fromkeys(["box", "violin", "strip"], _spread), "pie": _counts, "scatter_matrix": _correlations,
    }.items()},
    ("statsmodels", "from_formula"): _formula,
    ("statsmodels", "__init__"): lambda call: _regression(call)[:-1] + _errors(call),
    ("statsmodels", "add_constant"): _intercept,
    ("sklearn", "fit"): _regression,
    ("lifelines", "fit"): _survival,
    ("statsmodels", "SurvfuncRight"): _survival,
    **{(library, name): _samples(statistic)
       for library in ("scipy", "statsmodels")
       for name, statistic in {
           **dict.fromkeys(["ttest_ind", "f_oneway", "anova_oneway", "ztest", "alexandergovern", "tukey_hsd"],
                           "mean(population=True)"),
           **dict.fromkeys(["mannwhitneyu", "kruskal", "median_test", "ranksums", "brunnermunzel", "mood",
                            "ks_2samp"], "median()"),
       }.items()},
    **{("scipy", name): _paired for name in ("ttest_rel", "wilcoxon")},
    **{("statsmodels", name): _table_of_two for name in ("from_data", "Table2x2", "Table", "SquareTable")},
    ("statsmodels", "pairwise_tukeyhsd"): _in_groups,
    ("statsmodels", "DescrStatsW"): _method("{0}.mean(population=True), whose answer has an interval", "data"),
    ("scipy", "pearsonr"): _correlation,
    **{("scipy", name): _but(_correlation, "a correlation of values and not of ranks")
       for name in ("spearmanr", "kendalltau")},
    ("scipy", "ttest_1samp"): _one_sample,
    ("scipy", "linregress"): lambda call: _regression(call)[:-1] + ", population=True)" + TESTED,
    ("scipy", "describe"): _method("{0}.describe()", "a"),
}  # fmt: skip
"""The writer of what to write instead, by the library and the function's name."""
