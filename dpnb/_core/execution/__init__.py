"""Where requests are charged and answered from rows: in this process, or by the service that holds the table.

Everything else that a session does is computed from the declaration and the ledger, in the same way in both cases.
"""
