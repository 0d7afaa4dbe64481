"""Selection: the keys of the largest groups, without their counts.

``terms``     which queries can be selected from, and what follows from their public numbers
``pipeline``  the order charge, read, choose, write
``query``     the object that `Query.top` returns
"""
