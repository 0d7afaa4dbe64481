"""Connections of the service, and when replies leave."""
