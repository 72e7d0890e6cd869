"""Judging: find the policy, build the case, put it before the gates.

Belongs here: what a change, a commit, a push or a proposal is judged by, and what is known around it:
approvals, messages, components, the intents of a worktree. Nothing is written that anybody would miss:
caches, and that an intent was seen at work (`intents.touch`), so that nobody takes it over meanwhile.

* **The scope of a commit is a circumstance.** Which files a piece of work declared is no part of a change,
  so it is no part of a verdict's id. `intents` says which intent binds; what it allows, `gates.scope`. A
  worktree without a marker costs one look at the disk.
"""
