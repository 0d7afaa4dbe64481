"""What an analyst previews and releases: a query, several queries together, and a selection of the largest groups."""
