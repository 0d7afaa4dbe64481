"""The cockpit: the curator's page, served by the same process on an origin of its own.

``page``         the document and its script and style, which come from ``labextension/src/cockpit/``, and the messages
                 that tell it of changes
``protections``  which requests are accepted, the headers of every response, and the logins: a token of a curator, owner
                 or auditor is exchanged for a cookie
``app``          the routes
"""
