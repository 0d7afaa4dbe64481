"""Row expressions: small, frozen, serialisable trees.  No Python callable ever runs on rows.

``nodes``     the tree
``dtypes``    the types of expressions
``rules``     argument types, result types and nulls of each node, in one table that every backend follows
``bounds``    the rules of numbers: interval arithmetic; refuses undefined expressions
``choices``   the rules of conditions and categories
``calendar``  points in time as seconds, and their parts
``periods``   calendar periods of dates, as categories
``letters``   lower and upper case of texts, letter by letter
``text``      the tree as an analyst would write it

An expression over a missing value is missing, and a missing value never counts.  Conditions have three values, as in
SQL and in Kleene's logic: a comparison with a missing value is neither true nor false, and only rows for which the
whole condition is true are kept.  So both ``x > 1`` and ``~(x > 1)`` exclude a row without ``x``, on every engine
(plain pandas keeps it in the second).
"""
