"""Databases, by their URL: one reader for each driver, and the snapshots that a version of a table keeps."""
