"""The cockpit: the curator's page, served by the same process on an origin of its own.

``page``         the document and its script and style, which come from ``labextension/src/cockpit/``, and the messages
                 that tell it of changes
``protections``  which requests are accepted, the headers of every response, and the logins: a token of a curator, owner
                 or auditor is exchanged for a cookie
``records``      the versions of a table, the last copy of its ledger, the last audit, figures
``audits``       runs an audit in a process of its own
``app``          the routes
"""
