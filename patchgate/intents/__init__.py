"""Intents: what a piece of work declares, and what becomes of the declaration.

Belongs here: the verb `intent` (`verbs`), how a declaration is read (`request`), what is there when work
begins, whether hooks hold commits to it (`in_force`), who owns it, whose turn it is (`turns`), how it is
kept (`store`) and shown. What an intent is says `intent`, its file and marker `intents` and `marker`, how it
binds commits `commits`; `scope` is its gate.

Decisions:

* **A declaration is on record before it counts.** The ledger has its digest, then the worktree is marked,
  then the file is written: a kill in between leaves a word too many, never an intent that nobody knows of.
* **The marker says whose it is.** Whether a worktree has intents, the shims ask by one look at a file in
  its git folder; so a worktree that is made anew under an old name has none. Price: the marker alone keeps
  the fast path away until `intent clear`.
* **A queue moves where somebody looks.** Nobody runs in between: one that waits becomes active with the verb
  that clears the other one, with the next `show` in its worktree, or with any other verb that stores.
* **Waiting hides nothing.** A queued intent keeps the base of its declaration when it becomes active, so
  what is committed meanwhile is verified; and it binds commits at once, to those of its files that no other
  intent has.
* **An entry means one thing.** Scope, attribution and conflicts read entries by one module
  (`entries`), as git reads pathspecs. Two globs that can match one file are in conflict, whether
  such a file exists or not.
* **An intent stays within its repository.** One that was copied with a repository, or moved, is told as such
  and written nowhere, until somebody takes it into a worktree of this one, or clears it.
* **Who is gone blocks nobody, and binds all the same.** A dead intent may be taken over and its files
  declared by others; commits of its worktree are held to it until its time is over. Else waiting would be a
  way out.
"""
