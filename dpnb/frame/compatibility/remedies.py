"""What to write instead of an operation of pandas that a private table does not offer, by the operation's name.

The texts are templates for `dpnb.frame.compatibility.examples.examples`: each names something that works, with the
analyst's columns.
"""

from __future__ import annotations

SHOWS_ROWS = (
    "would show rows, which are never shown; release a summary instead, such as {number}.mean(), "
    "{number}.quantile([0.1, 0.9]) or {category}.value_counts()"
)
RUNS_CODE = (
    "would run Python on private rows; write the computation with arithmetic and methods of columns, such as "
    "{number} * 2, {number}.clip(0, 1), {number}.where({number} > 1, 0) or dpnb.cut({number}, 5)"
)
CUT = "dpnb.cut({number}, 5), or with edges dpnb.cut({number}, [0, 10, 100])"
OTHER_UNITS = "would compare rows of different privacy units, so that one could change the values of others; "
WITHIN_UNITS = {
    **{name: f".{name}()" for name in ("diff", "cumsum", "cummax", "cummin", "cumcount", "rank", "ffill")},
    **dict.fromkeys(["cumprod", "ngroup", "expanding", "ewm", "interpolate", "autocorr", "asof"], ".cumsum()"),
    **{"shift": ".shift(1)", "rolling": ".rolling(3).mean()", "bfill": ".ffill()", "pct_change": ".diff()"},
}
"""For operations of ordered rows, what the rows of one unit have."""
ROW_COUNT = (
    "would show the number of rows, which is private; release df.count() or df.count_units(); len(df.columns) is the "
    "number of columns"
)

REMEDIES: dict[str, str] = {
    **dict.fromkeys(
        ["tz_convert", "tz_localize"],
        "the zone of a column is declared by the curator, as in dpnb.Dates(first, last, zone='Europe/Berlin'), and is "
        "UTC without zone=; its parts, periods and constants are in the local time of that zone; zone= must be "
        "declared before the first charge; afterwards the curator declares a copy of the column with it",
    ),
    **dict.fromkeys(
        ["values", "to_numpy", "array", "head", "tail", "sample", "iloc", "iat", "at", "iterrows", "T",
         "itertuples", "to_list", "tolist", "to_dict", "to_csv", "to_pandas", "to_parquet", "to_json", "to_string",
         "to_excel", "to_markdown", "item", "pop", "index", "transpose", "first", "last", "nth", "xs", "take",
         "explode", "to_frame", "squeeze", "ravel", "flatten", "to_arrow", "to_polars", "iteritems", "truncate",
         "first_valid_index", "style", "to_html", "to_latex", "to_records", "to_sql", "to_clipboard"],
        SHOWS_ROWS,
    ),
    **dict.fromkeys(
        ["apply", "map", "applymap", "combine", "update"],
        RUNS_CODE,
    ),
    "transform": OTHER_UNITS + "{within}.transform('mean'){within_unit}; within a row " + RUNS_CODE.partition("; ")[2],
    **dict.fromkeys(["shape", "size", "empty", "memory_usage", "nbytes", "ndim"], ROW_COUNT),
    "info": "would count the values of each column without noise; df.dtypes and session.schema show the declared "
            "types, and df.notna().sum() is a query of these counts",
    **dict.fromkeys(
        ["nlargest", "nsmallest"],
        "would show the rows with the most extreme values; release {number}.quantile([0.9, 0.99]), {number}.max() or "
        "{number}.min()",
    ),
    **dict.fromkeys(
        ["idxmax", "idxmin", "argmax", "argmin", "argsort", "searchsorted"],
        "would name single rows; release {number}.max() or {number}.min(), or compare groups, as in "
        "df.groupby({category_name})[{number_name}].mean()",
    ),
    "mode": "could be decided by one row if several values are about equally common; "
            "{category}.value_counts().idxmax().release(epsilon=0.1) selects one with noise; for numbers release "
            "{number}.histogram(20), and take the largest",
    "loc": "is not offered; write {self}[{mask}]",
    **dict.fromkeys(
        ["where", "mask"],
        "is offered for columns, as in {number}.where({mask}, 0); rows are selected by df[{mask}]",
    ),
    **dict.fromkeys(["crosstab", "get_dummies", "cut", "qcut"],
        "is a function: dpnb.crosstab({category}, {category2}), dpnb.get_dummies({category}), " + CUT),
    "unique": "would show which values the rows have; {category}.unique() is the list of declared values{common_texts}",
    **dict.fromkeys(
        ["nunique", "is_unique", "groups", "indices", "get_group"],
        "depends on which values occur, which is private; release {category}.value_counts() for declared "
        "values{common_texts}, or df.count_units() for the number of privacy units",
    ),
    **dict.fromkeys(
        ["plot", "boxplot", "kde", "density", "pie"],
        "would draw rows; release a summary and draw that, as in {number}.histogram(20).release(share=0.05).plot()",
    ),
    "duplicated": OTHER_UNITS + "{one_row}df.count_units() counts the privacy units",
    **{name: f"{OTHER_UNITS}{{within}}{method}{{within_unit}}" for name, method in WITHIN_UNITS.items()},
    **dict.fromkeys(
        ["join", "concat", "append", "combine_first", "align", "compare"],
        "is not offered; join tables of a session, or a public table, with df.merge(other, on=...)",
    ),
    **dict.fromkeys(
        ["melt", "stack", "unstack", "wide_to_long", "swaplevel", "droplevel", "reindex", "set_axis",
         "rename_axis", "insert"],
        "changes the layout of rows, which has no effect on a query; name the columns where they are used, as in "
        "df.groupby({category_name})[{number_name}].mean(), or add one with df.assign(new={number} * 2)",
    ),
    "pivot": "changes the layout of rows, and needs none: {within}.diff(){within_unit}, or .first() and .last() for "
             "one row of each; groups have df.groupby({category_name})[{number_name}].mean() and df.pivot_table(...)",
    **dict.fromkeys(
        ["str"], "is for categories and texts; compare other columns with ==, as in {number} == 1, or use .isin([...])"
    ),
    **dict.fromkeys(
        ["skew", "kurt", "kurtosis", "prod", "product", "mad"],
        "is not offered; {number}.var(), {number}.std() and {number}.quantile([0.1, 0.5, 0.9]) are",
    ),
    "sem": "is offered of one column, as {number}.sem(); {number}.mean(population=True) has a population interval",
    **dict.fromkeys(
        ["any", "all"],
        "could be decided by one row; release the number or the share of rows instead, as in "
        "{condition}.sum() or {condition}.mean()",
    ),
    "test": "is a method of released answers, as in df.groupby({category_name})[{number_name}].mean(population=True)"
            ".release(share=0.05).test()",
    "set_index": "is not needed, since rows have no index; group rows by columns, as in "
                 "df.groupby({category_name}){periods}",
    "get": "is not offered; write {self}",
    "discover": "is a method of tables; write df.discover({self_name})",
    "cat": "is not offered; session.schema shows the declared categories, and {category}.value_counts() counts them",
}  # fmt: skip
"""The remedy of each name."""
