"""What may be asked, and how much one privacy unit can change the answer.  Knows sensitivity, never noise.

``schema``        what the curator declares of a column
``unit``          whom the promise protects, and how much one of them may contribute
``expressions/``  what a row gives, as a small tree with bounds
``aggregations``  what can be measured, and what can be read off it
``plan``          one question as a frozen value: what is measured, of which rows, for which groups
``wording``       a question in words
``identity``      when two plans measure the same
``frame/``        pandas verbs that build plans
``linear/``       plan -> the linear query it is: features of a row, sensitivity
``grid``          real numbers -> integers, toward zero
``unit_name``     which unit is meant by what somebody types
``values``        a column -> numbers, codes or names, value by value (reads rows)
``prepare``       data frames -> columns on the grid (reads rows)
``join``          two prepared tables side by side (reads rows)
``contribution``  which rows and groups of a unit count
``execute``       linear query x prepared columns -> exact integer sums (reads rows)
``discover``      which groups there are, and how many units each (reads rows)
"""
