"""Judging: find the policy, build the case, put it before the gates. Nothing is ever written."""
