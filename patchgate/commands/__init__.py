"""The user's own commands, run against a change, and what tools write.

Belongs here: what a command sees, how it is found, run and logged, how it ended and what is said of that
(`runner`), how many tests it ran and which failed (`failures`); an analysis that is run and read
(`analysis`, `metrics`, `sarif_file`, `sarif_results`, on `json_stream`), and its values (`results`). Does
not: which commands there are and in which order they run (`policy`), the tree that they run in (`git`),
whether a finding is new (`verify`), what verdict follows.

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
* **What an analysis tells is walked through, not loaded.** 120 MiB of SARIF take `json.load` 690 to 1,450
  MiB; result by result it is 270 to 800, of which nothing but what we compare is kept. Price: one and a half
  times to twice the time, and limits on each kind of thing that is kept. A document is read to its end: what
  is broken in a part that we do not read is broken.
* **A finding is known by what stands at its place**, not by a producer's fingerprint (semgrep writes the same
  for all) nor by a number of a line. The line is that of the tree in git, not of the file that the tool saw.
  Price: a finding whose line is edited is another one.
* **What failed is compared by name.** That a command fails with a patch and without it says nothing: what has
  failed decides (tests of a JUnit report, results of SARIF, else the output as a whole), and what cannot be
  named cannot be compared. pytest is asked for the report by `PYTEST_ADDOPTS`, as for tests of a component.
  Price: a runner that says the same in another order, or another line number, has failed otherwise.
* **A path that is no file of the tree names no file.** A tool that runs in a folder of the tree, or that
  cannot write a name, tells paths which nobody declared, and all that it finds would be somebody else's. Such
  a finding is in no file, so it is the work's own; such a metric is not evaluated. Price: what a tool finds
  in a file that it made itself is the work's own too.
"""
