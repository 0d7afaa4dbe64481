"""Cost and expected errors of queries, computed without the table."""
