"""The selection of the largest groups of a count, as the analyst uses it."""
