"""Preparation of a data frame: the columns of the schema, converted value by value.  Reads rows; reports nothing."""
