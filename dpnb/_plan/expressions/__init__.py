"""What a row gives: a small, frozen, serialisable tree.  No Python callable ever runs on rows.

``nodes``     the tree
``dtypes``    what a tree can give
``rules``     what each step takes, gives and does with nulls, in one table that every backend follows
``bounds``    the rules of numbers: interval arithmetic; refuses what has no meaning
``choices``   the rules of conditions and categories
``calendar``  points in time as seconds, and their parts
``text``      the tree as an analyst would write it

Whatever a row lacks makes what is computed from it missing, and a missing value never counts.  Conditions have three
values, as in SQL and in Kleene's logic: where a column holds nothing that counts, a comparison is neither true nor
false, and only rows for which the whole condition is true are kept.  So ``x > 1`` and ``~(x > 1)`` both leave out a
row without ``x``, on every engine (plain pandas keeps it in the second).
"""
