"""A query as frozen values without data: what is measured, of which rows, for which groups."""
