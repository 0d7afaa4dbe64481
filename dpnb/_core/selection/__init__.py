"""Selections of the largest groups: from which queries, at which charge, and what follows from public numbers."""
