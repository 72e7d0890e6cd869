"""Recognises an ordinary push of a few commits, for pre-push: exit code 99 accepts it, as in `hooks.fast`.

The shim passes on pushes of a few new commits in a line onto one existing branch, none of an agent. Every
commit is checked by its effect, and must have a receipt. A recognised push is recorded; any other gets the
full check.
"""

# … | python -E -P -c 'from … import run; run()' GIT_DIR COMMON_DIR VERSION REMOTE REF
# Standard input has for each commit, parents first: its id, a blank, its parent's id, LF; a pinned
# `git diff-tree`; NUL and `whole`; at the end `all`.

import os
import sys

from patchgate.hooks.fast import recognise
from patchgate.hooks.fast.recognise import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from patchgate.storage.record import Json

_ALL = b"all"
_LONGEST_REMOTE, _LONGEST_REF = 120, 200


def recognise_push(said: bytes, git_dir: str, common_dir: str, version: str) -> list[str]:
    """Recognise each commit of a push; return the commits.

    Raises:
        ValueError: one is not boring.
    """
    *sections, rest = said.split(b"\0" + recognise.ENDED)
    require(sections and rest == _ALL)
    heads = [section.partition(b"\n")[0].split(b" ") for section in sections]
    commits = [commit for commit, _ in heads]
    # A text may contain the end of a section, but never the id of its own commit.
    require([parent for _, parent in heads[1:]] == commits[:-1])
    outputs = [section.partition(b"\n")[2] + b"\0" + recognise.ENDED for section in sections]
    requests = [b"contents %s\n" % commit for commit in commits]
    requests.append(b"contents HEAD^{tree}\n")
    # Read at the end: git works meanwhile.
    descriptor = recognise.ask(git_dir, requests)
    trees = []
    for output, (_, parent) in zip(outputs, heads, strict=True):
        policy, _, tree, *_ = recognise.recognise(output, parent, parent, git_dir, common_dir, version)
        require(not policy["refuses_messages"] and not policy["has_components"])
        require(not policy["verifies_pushes"])
        trees.append(tree)
    answers = recognise.listen(descriptor)
    for commit, tree in zip(commits, trees, strict=True):
        oid, kind, _, text = recognise.take(answers, with_content=True)
        # A tree that git did not write can be malformed: its difference may be wrong.
        require(oid == commit and kind == b"commit" and text.startswith(b"tree %s\n" % tree))
        # A trailer of ours can ask for other limits, another encoding can hide one.
        require(b"\npatchgate-" not in text.lower())
        require(b"\nencoding " not in text.partition(b"\n\n")[0])
    # The policy of HEAD also decides whether pushes are verified, for any branch.
    root = dict(recognise.entries(recognise.take(answers, with_content=True)[3], len(heads[0][0]) // 2))
    at_head = recognise.load_policy(common_dir + "/patchgate/fast", root, version)
    require(not at_head["verifies_pushes"])
    return [commit.decode("ascii") for commit in commits]


def main(git_dir: str, common_dir: str, version: str, remote: str, ref: str) -> None:
    """Recognise a push, and record it."""
    # The limits of the ledger are not known here.
    require(len(remote) <= _LONGEST_REMOTE and len(ref) <= _LONGEST_REF and (remote + ref).isascii())
    commits = recognise_push(bytes(recognise.listen(0)), git_dir, common_dir, version)
    from patchgate.ledger.ledger import Ledger
    from patchgate.ledger.receipts import Receipts

    # What a commit has skipped the push runs.
    require(not os.path.exists(common_dir + "/patchgate/skipped-commands.json"))
    receipts = Receipts(common_dir)
    require(all(receipts.has(commit) for commit in commits))
    # A torn last line would be moved aside, which must be reported.
    end = recognise.read(common_dir + "/patchgate/events.jsonl")
    require(end[-1:] in (b"", b"\n") and b"\0" not in end)
    about: dict[str, Json] = {"remote": remote, "ref": ref, "commits": len(commits), "without_receipt": []}
    require(Ledger(common_dir).record("pushed", about) is None)


def run() -> None:
    """Run as a separate program."""
    sys.excepthook = lambda *_: os._exit(1)
    main(*sys.argv[1:])
    os._exit(recognise.ACCEPTED)
