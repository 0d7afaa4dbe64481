"""The log of the service, and figures for the curator's monitoring."""
