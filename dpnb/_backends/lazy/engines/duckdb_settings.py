"""Settings and macros of a DuckDB connection that would change what a query means.

The connection belongs to the user, who can change both at any time.  narwhals writes names of functions and operators
without their catalogue, so a macro with such a name would be used instead of DuckDB's own function.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from dpnb.errors import SchemaError

_SETTINGS = (
    *("default_collation", "default_null_order", "default_order", "order_by_non_integer_literal"),
    *("integer_division", "ieee_floating_point_ops", "scalar_subquery_error_on_multiple_rows"),
    *("dialect_compatibility_mode", "disable_timestamptz_casts", "preserve_identifier_case"),
    *("active_grammar_extensions", "allow_parser_override_extension", "current_dialect"),
    *("enable_profiling", "enable_logging"),
)
"""Settings that change what SQL means.  The last two record how many rows each step of a query has."""


def refuse_changed_meaning(connection: Any) -> None:
    """Refuse a connection on which a query may mean something else than on a new one.

    The message names the setting or macro, and quotes nothing else of the connection.
    """
    settings, functions = _on_new_connection()
    for name, value in _settings(connection).items():
        if value != settings[name]:
            raise SchemaError(
                f"DuckDB connection: {name} must be {settings[name]!r}, since another value changes what a query means "
                f"or shows; got {value!r}; RESET {name}, or use another connection"
            )
    # Neither functions nor operators, which macros could replace.
    macros = _rows(connection, "select function_name from system.main.duckdb_functions() where not internal")
    replaced = min({name.lower() for (name,) in macros} & functions, default=None)
    if replaced is not None:
        raise SchemaError(
            f"DuckDB connection: must have no macro with the name of a function of DuckDB; got {replaced!r}; drop the "
            "macro or rename it, or use another connection"
        )


@cache
def _on_new_connection() -> tuple[dict[str, Any], frozenset[str]]:
    """The settings of a new connection, and the names of its functions."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        names = _rows(connection, "select function_name from system.main.duckdb_functions()")
        return _settings(connection), frozenset(name.lower() for (name,) in names)


def _settings(connection: Any) -> dict[str, Any]:
    """The settings in `_SETTINGS` that this version of DuckDB has."""
    settings = dict(_rows(connection, "select name, value from system.main.duckdb_settings()"))
    return {name: settings[name] for name in _SETTINGS if name in settings}


def _rows(connection: Any, query: str) -> list[tuple[Any, ...]]:
    return connection.sql(query).fetchall()  # type: ignore[no-any-return]
