"""Placeholders: the scanner, its gate, and (in `claims`) what a verifier's claim about them is worth."""
