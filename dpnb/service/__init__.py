"""The curator's service: table, ledger and noise in the curator's process, for analysts who connect to it.

``settings``  the curator's file, ``curator.toml``
``opening``   opens the tables of the settings
``heads``     keeps the last row of each ledger where a copy of the ledger does not bring it back
``clock``     the time of the service, which never goes back
``tokens``    the access tokens: only their hashes are stored
``identities``  who sends a request: a holder of a token, or a user of JupyterHub (``hub``)
``app``       the routes, with authentication
``requests``  executes requests, each charged once
``events``    tells connected sessions that rows were added or answered
``log``       the structured log, which holds no value
``address``   the Unix socket or port on which the service listens
``server``    starts, reloads and stops the service

It needs ``pip install "dpnb[serve]"``.
"""
