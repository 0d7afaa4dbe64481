"""Nothing, in place of a library whose grammar of IRIs `jsonschema` would compile, for a second of each process.

Processes whose `PYTHONPATH` has this folder find it first, and `jsonschema` then checks no IRIs; nothing here has one.
"""
