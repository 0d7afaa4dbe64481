"""Row expressions: small, frozen, serialisable trees.  No Python callable ever runs on rows.

An expression over a missing value is missing, and a missing value never counts.  Conditions have three values, as in
SQL and in Kleene's logic: a comparison with a missing value is neither true nor false, and only rows for which the
whole condition is true are kept.  So both ``x > 1`` and ``~(x > 1)`` exclude a row without ``x``, on every engine
(plain pandas keeps it in the second).
"""
