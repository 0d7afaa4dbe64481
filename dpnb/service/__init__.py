"""The curator's service: table, ledger and noise in the curator's process, for analysts who connect to it.

It needs ``pip install "dpnb[serve]"``.
"""
