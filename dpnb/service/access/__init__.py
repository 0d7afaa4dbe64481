"""Who may use the service: tokens, users of JupyterHub, and the clock by which tokens expire."""
