"""Claims: what a verifier says of finished work is held against the files.

Belongs here: reading a verdict (`request`), which files its words mean (`named`), what is judged and
by whose policy (`judged`), what of it can be read (`snapshots`), the adjudication itself, its record,
its answer as JSON. What a placeholder looks like says the scanner in the folder above.

Decisions:

* **What cannot be looked at contradicts nobody.** A path that leaves the repository, a file that was never
  written, a symlink, one that nobody may read: each stays a candidate with its fault, and none is dropped on
  the way. Only where the tree itself cannot be read there is no answer at all.
* **A name with backslashes may mean two files, and then both count.** Nobody hides a file behind another one
  that is really called so. Price: with both there, two deliverables were named instead of one.
* **The policy is that of before**: the trusted ref's, else HEAD's; of a revision its first parent's, where it
  has one. No change chooses how closely it is looked at.
* **A passed verdict is remembered with its files**, for they are the earlier work of that subject. What is
  gone since cannot be looked at, and then nothing is contradicted. Nor is it where the ledger is damaged, or
  cannot be read: what it does not say any more would be missed by nobody. Price: the whole chain is checked
  for each claim with a subject, 2 s for 100,000 events.
* **While a merge waits, all that differs from HEAD is the current attempt's**, what it brought too. Price: a
  large merge exhausts the caps, and its claims stand.
"""
