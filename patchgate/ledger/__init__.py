"""Room 3, the wing of the ledger: what happened here, remembered under the git common directory.

Belongs here: the permanent record of events (`ledger`, `event`), the notes that a change was accepted and the
tips that were there at install (`receipts`), the exceptions that people granted (`approvals`). Does not:
judging, git, what any of it means for a verdict, printing.
Callers: `operations`; `surfaces` for the names of the kinds. Imports `durable`, `change` and `errors`. No
pydantic: an event is written in a hook, where its import costs more than all the rest.

All of it lies in `<git common dir>/patchgate/`: shared by the worktrees, never tracked, out of a checkout's
reach. Public: `Ledger.record`, `.events`, `.lines`, `.verify`; `Receipts.has`, `.commits`, `.by_tree`,
`.add`; `settle` and `settled`. A clean commit makes these objects and records nothing: the chain (8 ms) and
regular expressions are imported where they are used.

Decisions:

* **A memory that fails never changes a verdict.** No event and no receipt raises because a disk is full, a
  folder read-only or a lock held: writing gives back one sentence to warn with. A damaged receipt is none:
  its commit is judged again. Price: an event can be lost, and only the warning says so.
* **The ledger is chained and flushed, receipts are neither.** A lost event is a hole in the record; a lost
  receipt costs one judgement. So receipts are plain lines that `sh` can append with `cat`, in one write,
  without a lock; a line that is torn, glued or foreign is no receipt.
* **The chain proves that nothing was lost or torn, not who wrote it.** Whoever can write `.git` can write the
  ledger and the receipts anew. The authority is the push, CI and the server, which always judge again.
* **A writer waits for the lock once.** Who has found it held for its whole patience tries the later events of
  the same command without waiting, so that a stuck process costs a hook seconds, once.
"""
