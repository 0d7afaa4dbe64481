"""What is computed unit by unit: vectors and their norms, and values from the rows of one unit."""
