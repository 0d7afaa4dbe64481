"""Queries on tables that stay in an engine: expressions of narwhals, of which the engine returns only the sums."""
