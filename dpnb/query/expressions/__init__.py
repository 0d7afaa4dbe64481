"""What a row gives: a small, frozen, serialisable tree.  No Python callable ever runs on rows.

``nodes``     the tree
``kinds``     what a tree gives, with bounds by interval arithmetic; refuses what has no meaning
``dates``     points in time as seconds, and their parts
``words``     the tree as an analyst would write it
``evaluate``  the tree over prepared columns (reads rows)

Whatever a row lacks makes what is computed from it missing, and a missing value never counts.  Conditions have three
values, as in SQL and in Kleene's logic: where a column holds nothing that counts, a comparison is neither true nor
false, and only rows for which the whole condition is true are kept.  So ``x > 1`` and ``~(x > 1)`` both leave out a
row without ``x``, on every engine (plain pandas keeps it in the second).
"""
