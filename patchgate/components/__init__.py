"""Components: their contracts, their baselines, and the tests between them.

Belongs here: the gates `contracts` and `drift` with their facts, and the commands `component` and `baseline`,
which read the index or `HEAD` under the policy in that tree. Baselines are the only tracked files written
here. Files are compared by object ids; a content is read only if its id differs.
"""
