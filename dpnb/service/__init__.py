"""The curator's service: table, ledger and noise in the curator's process, for analysts who connect to it.

``configuration/``  the curator's file, ``curator.toml``: typed settings, parts of budgets, ports and sockets
``access/``         tokens, of which only hashes are stored, users of JupyterHub, and the clock by which tokens expire
``network/``        connections, and when replies leave; tells connected sessions that rows were added or answered
``app``             the routes, with authentication
``requests``        executes requests, each charged once; ``turns`` between analysts, ``limits`` of each
``running``         the request that a table executes now, and charges that wait for the curator
``opening``         opens the tables of the settings; ``served`` is one of them with its analysts
``heads``           keeps the last row of each ledger where a copy of the ledger does not bring it back
``curation/``       what curators and auditors see of a table, and do about it
``cockpit/``        the curator's page
``monitoring/``     the structured log, which holds no value, and figures for monitoring
``server``          starts, reloads and stops the service; ``commands`` are those of the command line

It needs ``pip install "dpnb[serve]"``.
"""
