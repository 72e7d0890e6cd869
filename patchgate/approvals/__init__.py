"""Approvals: what a maintainer allowed, by whom it was signed, and what that does to a verdict."""
