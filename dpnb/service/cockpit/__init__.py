"""The cockpit: the curator's page, served by the same process on an origin of its own.

A token of a curator, owner or auditor is exchanged for a cookie.  Script and style of the page come from
``labextension/src/cockpit/``.
"""
