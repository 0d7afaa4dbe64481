"""What pandas and numpy have and a private table has differently, or not: accepted, translated or refused."""
