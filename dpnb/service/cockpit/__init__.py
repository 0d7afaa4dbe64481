"""The cockpit: the curator's page, served by the same process on an origin of its own.

``app``          the routes
``page``         the document and its script and style, which come from ``labextension/src/cockpit/``; tells the page
                 that something has changed
``protections``  the logins, which requests are accepted, and the headers of every response
"""
