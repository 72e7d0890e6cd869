"""The pipeline: find the policy, build the case, ask the gates, and make the verdict.

The core gates are here: paths, policy, content, shape, governance, message, refs. A gate is a pure function
from a `Case` to findings, without git, files or a clock; `gate` has the table. Nothing is written but caches.

* **The scope of a commit is a circumstance.** Which files a piece of work declared is no part of a change,
  so it is no part of a verdict's id.
"""
