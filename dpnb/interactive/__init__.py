"""Mechanisms that answer more than once.  So far one: ``refinement``, a question asked again and again."""
