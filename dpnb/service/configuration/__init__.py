"""The settings of the service, read from files and checked."""
