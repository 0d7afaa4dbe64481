"""The filter and the odometers of a session, rebuilt from the rows of the ledger.

``accountant``     the guarantee, the filter and the odometers of a session, and their state after some rows
``parameters``     their computed parameters, as stored in the ledger
``admission``      whether the filter admits a charge, and the error if it does not
``tree``           the launches of a ledger, and how its nodes are connected
``comparison``     the state of every filter and odometer after the same history
``timeline``       their states after each row, for a plot
``participation``  which units take part under individual accounting, as far as that is public

For a service: ``grant`` is a part of the budget, ``granting`` has a curator's acts about parts, ``people`` those that
add and remove analysts and hand over a part, and ``limit`` the cap on one; ``budget_request`` is an analyst's request
for a larger cap, and ``deciding`` has the decisions about it.
"""
