"""What curators and auditors see of a table, and do about it."""
