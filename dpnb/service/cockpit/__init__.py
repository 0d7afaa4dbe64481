"""The cockpit: the curator's page, served by the same process on an origin of its own.

``page``         the document and its script and style, which come from ``labextension/src/cockpit/``
``protections``  which requests are accepted, and the headers of every response
``logins``       the logins: a token of a curator, owner or auditor is exchanged for a cookie
``views``        what the page shows, without answers
``live``         tells the page that something has changed
``app``          the routes
``serving``      the second server of the process
"""
