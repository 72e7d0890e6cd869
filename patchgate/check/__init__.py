"""The pipeline: find the policy, build the case, ask the gates, and make the verdict.

The core gates are here: paths, policy, content, shape, governance, message, refs. A gate is a pure function
from a `Case` to findings, without git, files or a clock; `gate` has the table. Nothing is written but caches.
"""
