"""Recognises a clean merge in which no path was changed on both sides, and no rule has anything to report.

The full check repeats the merge. Here git only compares. There is one merge base, and the index differs from
HEAD exactly as the other side differs from that base: then it is what git merges, unless a file was moved, or
a folder. Whatever is not decided here raises an error, and the full check decides.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Record = tuple[bytes, bytes, bytes]

_HEAD = b"GITHEAD_"
_SIDE = ("diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--full-index", "--no-color")
_PINNED = ("--ignore-submodules=none", "-O/dev/null", "--no-ext-diff", "--merge-base")
# The questions about the parents of more do not fit into the pipe.
_MOST_BROUGHT = 24
_MOST_BYTES = 4 << 20
_POLICIES = (b"patchgate.toml", b"pyproject.toml")
_HEXADECIMAL = b"0123456789abcdef"


class _SideAnswer:
    """What git prints for one command that runs beside this process; `--merge-base` needs git 2.30."""

    def __init__(self, tools: Any, git_dir: str, environ: Mapping[bytes, bytes], *command: str) -> None:
        kept = {name: value for name, value in environ.items() if name in tools.KEPT}
        self._hears, says = os.pipe()
        self._child = os.posix_spawnp(
            "git",
            ("git", "--git-dir=" + git_dir, "--bare", "-c", "protocol.allow=never", *command),
            {**kept, **tools.PINNED, b"GIT_GRAFT_FILE": b"/dev/null"},
            file_actions=((os.POSIX_SPAWN_DUP2, says, 1),),
        )
        os.close(says)

    def read(self) -> bytes:
        """Read it to the end.

        Raises:
            ValueError: git failed, or it is too long.
        """
        said = bytearray()
        while piece := os.read(self._hears, 1 << 18):
            said += piece
            if len(said) > _MOST_BYTES:
                raise ValueError
        if os.waitpid(self._child, 0)[1] != 0:
            # More than one merge base, or none; an older git; a missing object.
            raise ValueError
        return bytes(said)


def recognise_merge(
    tools: Any, environ: Mapping[bytes, bytes], git_dir: str, common_dir: str, version: str, ref: str
) -> None:
    """Recognise the merge that git is about to commit, and leave its pending receipt (`check.pending`).

    Args:
        tools: the module of the recogniser. On standard input are the records of a pinned `git diff-index`;
            then NUL and `whole`.
        environ: that of the hook, in which git names what it merges.

    Raises:
        ValueError: only the full check can decide; any other error means the same.
    """
    require = tools.require
    branch = os.fsencode(ref)
    head = tools.read(f"{common_dir}/{ref}").rstrip(b"\n").decode("ascii")
    # MERGE_HEAD is written later.
    (other,) = [name.removeprefix(_HEAD).decode("ascii") for name in environ if name.startswith(_HEAD)]
    for oid in (head, other):
        require(len(oid) in (40, 64) and not oid.encode("ascii").translate(None, _HEXADECIMAL))
    for left in (git_dir + "/MERGE_HEAD", git_dir + "/patchgate-shown", common_dir + "/shallow"):
        require(not os.path.lexists(left))
    listed = ("rev-list", "--parents", f"--max-count={_MOST_BROUGHT + 1}", other, "^" + head)
    listing = _SideAnswer(tools, git_dir, environ, *listed)
    theirs = _SideAnswer(tools, git_dir, environ, *_SIDE, *_PINNED, head, other)
    output = bytes(tools.listen(0))
    require(output.endswith(b"\0" + tools.ENDED))
    output = output[: -1 - len(tools.ENDED)]
    records = read_records(tools, output)
    brought = [line.split(b" ") for line in listing.read().splitlines()]
    # Merges below: the one base need not explain what they did.
    require(0 < len(brought) <= _MOST_BROUGHT and all(len(each) == 2 for each in brought))
    require(records and theirs.read() == output)
    statuses = {status for _, status, _ in records}
    if statuses != {b"M"}:
        since = _SideAnswer(tools, git_dir, environ, *_SIDE, *_PINNED, other, head).read()
        ours = {each[-1:] for each in since.split(b"\0")[0:-1:2]}
        # A file that one side moves, and one that the other adds to the folder that it left.
        require(not (b"A" in statuses and b"D" in ours) and not (b"D" in statuses and b"A" in ours))
    policy, tree = _judge_result(tools, records, brought, (git_dir, common_dir, version), (branch, head))
    tools.check_answered(common_dir, head.encode("ascii"), ref, branch)
    tools.check_intents(common_dir)
    _require_receipts(tools, common_dir, brought)
    about = b"patchgate.merging/1 %s %s\n" % (version.encode("ascii"), tree)
    tools.leave(git_dir + "/patchgate-pending", None)
    tools.leave(git_dir + "/patchgate-merging", about + f"{head} {ref} {other}\n".encode(*tools.TEXT))
    quiet = None if policy["judges_messages"] else version.encode() + b"\n"
    tools.leave(git_dir + "/patchgate-quiet", quiet)


def read_records(tools: Any, output: bytes) -> list[Record]:
    """Read raw records: path, status and new blob of plain files.

    Raises:
        ValueError: there is another one.
    """
    words, found = output.split(b"\0"), []
    tools.require(len(words) % 2 and not words.pop())
    for about, path in zip(words[::2], words[1::2], strict=True):
        old_mode, new_mode, _, blob, status = about.removeprefix(b":").split(b" ")
        form = b" ".join((old_mode, new_mode, status))
        tools.require(form in tools.FORMS and not path.translate(None, tools.PLAIN))
        found.append((path, status, blob))
    return found


def _judge_result(
    tools: Any,
    records: list[Record],
    brought: list[list[bytes]],
    place: tuple[str, str, str],
    named: tuple[bytes, str],
) -> tuple[dict[str, Any], bytes]:
    """Require that no rule has anything to report; return the policy, and the tree that git writes."""
    require, take, (git_dir, common_dir, version) = tools.require, tools.take, place
    branch, head = named
    touched = list(dict.fromkeys(each for path, _, _ in records for each in tools.above(path)))
    parents = list(dict.fromkeys(parent for _, parent in brought))
    listed = [f"{head}^{{tree}}", *(f"{head}:{folder.decode('ascii')}" for folder in touched)]
    asked = [b"info HEAD\n", b"info %s\n" % branch]
    asked += [b"info %s:%s\n" % (parent, name) for parent in parents for name in _POLICIES]
    answers = tools.ask(git_dir, [*asked, *(f"contents {each}\n".encode("ascii") for each in listed)])
    tools.check_trust(git_dir, common_dir)
    said = tools.listen(answers)
    require([take(said)[:2] for _ in "12"] == [(head.encode("ascii"), b"commit")] * 2)
    before = [tuple(take(said)[0] for _ in _POLICIES) for _ in parents]
    width = len(head) // 2
    root = dict(tools.entries(take(said, True)[3], width))
    key = [root.get(name, "") for name in _POLICIES]
    # The same policy all along: a receipt from before the first one does not count after it.
    require(all([each.rpartition(".")[2].encode("ascii") for each in key] == list(oids) for oids in before))
    policy = tools.load_policy(common_dir + "/patchgate/fast", root, version)
    require(not (policy["has_components"] or policy["commands"] or policy["refuses_messages"]))
    tools.check_names([path for path, _, _ in records], policy)
    trees = {b"": root}
    for folder in touched:
        _, kind, _, tree = take(said, True)
        require(kind in (b"tree", b"missing"))
        trees[folder] = dict(tools.entries(tree, width))
    tree = tools.resulting(records, trees, width)
    for names in trees.values():
        require(b"".join(names).isascii() and len({name.lower() for name in names}) == len(names))
    return policy, tree


def _require_receipts(tools: Any, common_dir: str, brought: list[list[bytes]]) -> None:
    """Require that each commit that the merge brings was accepted here."""
    lines = tools.read(common_dir + "/patchgate/receipts").split(b"\n")[:-1]
    receipts = {line.split(b" ", 1)[0]: line.split(b" ") for line in lines}
    for oid, parent in brought:
        words = receipts[oid]
        tools.require(len(words) == 3 and words[2] == parent and len(words[1]) == len(oid))
        tools.require(not words[1].translate(None, _HEXADECIMAL))
