"""What a ledger's charges add up to: filter and odometers, rebuilt from the rows and kept in step with them.

``accountant``     the guarantee, the filter and the odometers of a ledger
``state``          how they stand after some rows
``admission``      whether the filter admits a charge, and the refusal if not
``tree``           what was launched in a ledger, and how its nodes are connected
``comparison``     the same history through every filter and odometer
``timeline``       how they stood after each of the rows, for a picture
``participation``  who takes part under individual accounting, as far as that is public
"""
