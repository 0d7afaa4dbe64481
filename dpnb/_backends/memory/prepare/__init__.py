"""A data frame becomes columns that the schema describes, value by value.  Reads rows; says nothing about them."""
