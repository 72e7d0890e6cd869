"""What git says a change is, and what is written to a working tree.

Belongs here: opening repositories, reading objects and lists, turning them into `Change` values; what is
written to a working tree and its index, whole or not at all (`transaction`, `staging`, `checkout`); the
scratch trees in which a patch is tried (`scratch`, `private`). `path`, `quoting` and `model` are pure
values. Does not: policy, verdicts, wording of refusals. The only home of pygit2.

Decision: git's plumbing is the truth for lists, trees and bytes; libgit2 diffs pairs of buffers that git's
attributes hide. Context: libgit2 1.9 reads no SHA-256, reftable, split- or sparse-index repository, ignores
`GIT_INDEX_FILE`, and its import costs 85 ms, while one `cat-file --batch-command` answers everything in 2 ms.
Price: two or three children a command. Because plumbing comes first, nothing is lost where libgit2 cannot
read; `Repository.limits` still says so in the report.

Decision: a scratch tree is a repository of its own, not a linked worktree. Context: a test that runs
`git tag`, `git stash` or `git config` in a linked worktree reaches the original's refs and config, and the
tree shows in `git worktree list`. Price: some hundred lines that lend it objects, refs and filters.

Decision: git's word on "binary" counts nowhere. A tracked `.gitattributes` with `-diff` turned 490 added
lines into `-`; `core.worktree` and `attr.tree` brought such attributes back where only trees are compared
(measured). So git gets neither of them, trees are diffed without an index, and each side of each change is
looked at, byte for byte. Price: every blob is read; a range of 1,056 commits took 1.06 times the CPU.

Decision: a git child has answered only if it ended as its command ends. Context: what a child wrote before
it died looks like a whole answer; a commit that needed too much memory was accepted as empty. So
`Repository.git` takes the exit codes that are answers, and raises at every other code and at every signal.
Who reads a child while it runs hands a record on only when what follows it was read, and ends with `finish`
and the exit code. Who stops early may rely on what was read, never on what was not. Price: one line more for
each walk. What can't be seen: an exit code of 0 behind an answer that was cut between two records. Only
`cat-file` and the walk of commits, which know how many answers they get, refuse that as well; no real git
does it.
"""
