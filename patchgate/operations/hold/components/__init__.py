"""Holding components to their word: contracts, baselines, and the tests that stand between them.

Belongs here: what the verbs `component` and `baseline` do. They look at the index or at `HEAD`, by the policy
that stands in that very content. Nothing here judges a change: what is said of contracts and drift is said by
the same gates, over the same facts that `judge` gathers. Does not belong here: how a change is judged
(`judge`), `baseline status`, which only reads and so is told (`tell/baselines`), what writes source files
(`land`). Baselines are the only tracked files that are written here.

Components are looked at by object ids first; a content is read only where an id differs. The tests of a
component run in a scratch tree of the content that is recorded, never in the working tree: what lies about
there untracked would pass tests that fail everywhere else.
"""
