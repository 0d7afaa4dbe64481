"""What a remote session and the service send each other: frozen values without code, files or queries as text.

Both sides decode with these types only, and refuse everything else.
"""
