"""What may be asked, and how much one privacy unit can change the answer.  Knows sensitivity, never noise.

``schema``        what the curator declares of a column, and of the privacy unit
``expressions``   the small tree that says which rows count
``plan``          one question as a frozen, serialisable value
``frame``         pandas verbs that build plans
``linear``        plan -> the linear query it is: features of a row, sensitivity
``grid``          real numbers -> integers, toward zero
``prepare``       a data frame -> columns on the grid (reads rows)
``contribution``  which rows of a unit count
``execute``       linear query x prepared columns -> exact integer sums (reads rows)
"""
