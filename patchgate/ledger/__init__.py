"""The ledger: what happened here, remembered under the git common directory.

Belongs here: the permanent record of events (`ledger`, `history`, `since`), the notes that a change was
accepted, the tips that were there at install and how far each branch has been told of the rest (`receipts`),
what an adjudication leaves and what records share (`adjudications`), traces of internal errors (`traces`),
and how secrets are masked in them (`masking`). Does not: judging, git, what any of it means for a verdict. No
pydantic: an event is written in a hook, where its import costs more than all the rest. Approvals, intents
and attempts keep records of their own in their features' folders, by the same rules.

All of it lies in `<git common dir>/patchgate/`: shared by the worktrees, never tracked, out of a checkout's
reach. Public: `Ledger.record`, `.require_writable`, `.events`, `.lines`, `.mentions`, `.verify`;
`Receipts.has`, `.commits`, `.by_tree`, `.recent_parents`, `.add`; `Told.covers`, `.note`; `settle` and
`settled`; `attempts.record`, `.records`, `.past`, `.find`; `open_evidence` and `Evidence`; `Masks`. A clean
commit makes these objects and records nothing: the chain and regular expressions are imported where they are
used. Recording one event is nearly all that a hook does at a push, so what it loads is `json`, `hashlib` and
little else (18 ms of CPU above a bare Python, 13 of them for those two; 46 with `dataclasses`, `pathlib` and
`typing`); a test pins it.

Decisions:

* **A memory that fails never changes a verdict.** No event and no receipt raises because a disk is full, a
  folder read-only or a lock held: writing gives back one sentence to warn with. A damaged receipt is none:
  its commit is judged again. Price: an event can be lost, and only the warning says so.
* **An intent is no memory but a promise, and fails closed.** What cannot be read of one makes commits of its
  worktree undecided; what is not on record was not declared. The marker in the worktree's git folder says
  which are its own, for `sh` to see; each lies in a file of its own, sealed. Price: a full disk stops a
  declaration.
* **The ledger is chained and flushed, receipts are neither.** A lost event is a hole in the record; a lost
  receipt costs one judgement. So receipts are plain lines that `sh` can append with `cat`, in one write,
  without a lock; a line that is torn, glued or foreign is no receipt.
* **The chain proves order and content, its head file the end, neither proves who wrote it.** Whoever can
  write `.git` can write the ledger, `events.jsonl.head` and the receipts anew. The authority is the push, CI
  and the server, which always judge again.
* **A writer waits for the lock once.** Who has found it held for its whole patience tries the later events of
  the same command without waiting, so that a stuck process costs a hook seconds, once.
* **What was told is noted by commit, not by the ledger's length.** A branch holds another one's let-through
  commit once it is made anew, reset or merged, and no length of the ledger shows that. So `told` says up to
  which commit a branch was told, and from there only plain commits with a receipt lead on. Price: the first
  commit after a merge or a fetch asks git again, where something was ever let through.
* **Evidence is opened before anything is judged, and only its candidate is flushed.** A folder that cannot be
  written ends `apply` while nothing has been done. Of what comes later a failure is a warning, for the patch
  has landed by then. Opening costs 2 ms, of which one flush is most; report, review and bundle are written
  without: the verdict and its rules are in the event. Price: after a power cut they may be missing or empty.
* **Whose a folder of evidence is, the marker in it says, and whether its attempt goes on, a lock on that.**
  The kernel drops the lock however the process ends, also of one in another pid namespace. A name alone
  removes nothing. Price: a kill in the microseconds before the marker is written leaves an empty folder.
* **The candidate is never masked, all the rest is.** It has to be the bytes that were judged; the folder is
  its owner's alone (0700). What is encoded in some other way than `masking` knows is not found in the rest.
"""
