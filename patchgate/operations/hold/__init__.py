"""Holding work to its word: what was promised of components, and of a piece of work.

Belongs here: `components` (contracts, baselines, and the tests that stand between them), `intents` (what
one piece of work declares that it will touch), `verify` (the analyses of a tree, and whether it got worse),
`claims` (what a verifier says of finished work).
Does not belong here: how a change is judged, and the scope of a commit (`judge`), what writes source files
(`land`), what only reads (`tell`).

The arrows are verify -> intents; components and claims by themselves. Nothing of these imports `tell`.
"""
