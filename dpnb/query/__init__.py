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
``tables/``       the tables of a session, wherever their rows are; what a session asks of them
``engine/``       questions put to polars, DuckDB or Spark, which add up (reads rows, there)

In memory (all of these read rows):

``values``        a column -> numbers, codes or names, value by value
``prepare``       data frames -> columns on the grid
``blocks``        rows in pieces of whole units, on all cores
``join``, ``part``  two prepared tables side by side; the rows of a group
``contribution``  which rows and groups of a unit count
``counted``       which rows a question counts
``execute``       linear query x prepared columns -> exact integer sums
``by_unit``       the same unit by unit: `unit_vectors`, and their norms alone, `unit_squares`
``gradient``      gradients of a `regression`, unit by unit
``discover``      which groups there are, and how many units each
``guard``         nothing but the result of such work comes out, no error's text either
"""
