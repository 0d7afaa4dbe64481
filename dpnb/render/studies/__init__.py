"""Rendering of the results of whole studies."""
