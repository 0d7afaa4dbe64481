"""The tests; a package, since an environment may hold another one of this name."""
