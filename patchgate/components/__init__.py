"""Components: their contracts, their baselines, and the tests between them.

Belongs here: the gates `contracts` and `drift` with what they gather, and the commands `component` and
`baseline`. These look at the index or at `HEAD`, by the policy of that very content, and use the same gates
over the same facts. Baselines are the only tracked files that are written here.

Components are looked at by object ids first; a content is read only where an id differs. The tests of a
component run in a scratch tree of the content that is recorded, never in the working tree: what lies about
there untracked would pass tests that fail everywhere else.
"""
