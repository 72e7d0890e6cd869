"""Room 3, the wing of tools: the user's own commands, run against a change.

Belongs here: what a command sees (`environment`), how it is found, run and logged (`runner`), how it ended
and what is said of that (`outcome`), how many tests it ran (`junit`). Does not: which commands there
are and in which order they run (`declared`), the tree that they run in (`git`), where their logs lie
(`ledger`), what verdict follows.
Callers: `operations`. Imports `declared`, `verdict`, `change`, `process`, `errors`.

Decisions:

* **A command is trusted, the tree that it runs in is not.** The policy of the base names the command; the
  patch is in the tree. So a bare name of a program is looked up on the caller's PATH without relative entries
  and without folders within the scratch tree, or a patch could bring its own `ruff`. A command that names a
  file of the tree (`./scripts/test.sh`) does run what the patch made of it: that is what a test is for.
  Price: who has `node_modules/.bin` or `.` on PATH names the program's place, or calls it by `npx`.
* **The caller's environment, without git's and ours.** A tool needs more than any list of ours would hold
  (locale, proxies, toolchains), so it is no allow-list; but every `GIT_*` goes: a tool that runs git would
  otherwise work on the user's index (measured: in a hook, `git worktree add` did). `GIT_CEILING_DIRECTORIES`
  is set to what is above the scratch tree, so that git in a tree which is no repository finds no other.
* **What could not be tried is not a failure.** A program that is missing or that takes too long says nothing
  against a patch: those outcomes make the verdict undecided. Exit code 127 is a failure all the same, since a
  patch can bring it about; the hint says what it usually means.
"""
