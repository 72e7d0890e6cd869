"""Verify: the analyses of a tree, and whether it got worse by this piece of work.

Belongs here: the verbs `analyze` and `verify`; which tree is meant and whose analyses count (`content`),
their runs (`analyses`) and where these are kept (`store`), what belongs to an intent (`intent`, `work`),
the push (`push`), how two runs are compared and what follows, how answers are written down. Does not: how a
tool is run and read (`commands`), the scope of a commit in the hooks (`intents/commits`).

Decisions:

* **A run is known by what it was made of**: tree, settings, program. It is kept under that key, sealed, and
  never made twice. What could not be evaluated is not kept, for the environment may be mended. Price: what
  a program loads beside its own file is not seen; `analyze --check-stable` runs it anew.
* **The analyses are those from before the change**: of what it is compared with; under an intent HEAD's,
  and they must be those of the declaration. No change chooses its own measure.
* **An analysis only reads.** One that changes tracked files has looked at something else.
* **Never on a server.** pre-receive judges, and runs nothing of a repository's.
"""
