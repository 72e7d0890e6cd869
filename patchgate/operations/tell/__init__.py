"""Telling: what is in force and why. Only reads."""
