"""The disclosure statement of a session, computed from the rows of its ledger alone.

``building``   the statement of a ledger, or of the rows that one analyst may see
``figures``    guarantee, filter, tables, readings
``requests``   the charged requests, the mechanisms and the curator's acts
``division``   how the budget is divided
``people``     what is assumed of parts that were handed over
``sentences``  the sections in plain language
``texts``      the paragraph for a paper, and the entry for the registry of deployments
``together``   what several ledgers about the same units guarantee
"""
