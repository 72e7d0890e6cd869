"""What is not boring, one case for each condition of the recogniser.

A case arranges a repository, or changes what git said, into something that git never says by itself (a cut
answer, another HEAD between two answers). The recogniser hands each on, and takes each for boring once its
condition is dropped: everything else about it is boring.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.hooks.fast.arrangements import (
    Craft,
    attributes,
    below,
    boring,
    break_seal,
    by_a_symlink,
    by_another,
    by_another_name,
    committed,
    described,
    file_for_folder,
    in_index,
    including,
    instead,
    kept,
    long_path,
    merging,
    moved_beside_a_marker,
    named,
    of_another,
    origin_has,
    receipt,
    recorded,
    removed,
    replaced,
    staged,
    tagged,
    then,
    told,
    trusting,
    trusting_at_home,
    trusting_in_worktree,
    trusting_in_xdg,
    unanswered,
    unended,
    unfinished,
    with_an_intent,
    with_long_config,
    without_config,
)
from tests.hooks.fast.boring_world import Arrange, World


@dataclass(frozen=True)
class Case:
    """How a repository is arranged, under which policy, and what becomes of what git says.

    `craft` changes the difference, `alter` what cat-file answers. `is_disk_full`: nothing longer than a
    kilobyte can be written. `lands` makes a commit of what is arranged, which main is about to get.
    """

    arrange: Arrange
    policy: str = ""
    craft: Craft | None = None
    alter: Craft | None = None
    is_disk_full: bool = False
    lands: Callable[[World], str] | None = None


_NO_COUNT = '[rules]\nmax-files = "off"\nmax-added-lines = "off"\nmax-file-bytes = "off"\n'
_LONG_NAMES: dict[str, str | bytes] = {f"{number:04}{'n' * 150}": "x\n" for number in range(12)}

CASES: dict[str, Case] = {
    "five megabytes are staged": Case(staged(big="x" * (5 << 20) + "\n"), _NO_COUNT),
    "the tree of HEAD is longer than was said": Case(boring, alter=unended),
    "the tree of HEAD has an odd mode": Case(boring, alter=replaced(b"100644 a\0", b"100664 a\0")),
    "the tree of HEAD is not sorted": Case(boring, alter=replaced(b"100644 b\0", b"100644 A\0")),
    "the tree of HEAD has a slash in a name": Case(
        then(committed({"c.d": "x\n"}), boring), alter=replaced(b"100644 c.d\0", b"100644 c/d\0")
    ),
    "the tree of HEAD has a file and a folder of one name": Case(
        then(committed({"srb": "x\n"}), boring), alter=replaced(b"100644 srb\0", b"100644 src\0")
    ),
    "the folder of a changed file is no tree": Case(
        named({"src/deep/c.py": "x = 3\n"}), alter=replaced(b" tree ", b" blob ")
    ),
    "more blobs than a pipe holds": Case(
        named({f"many/{number}": "x\n" for number in range(400)}), _NO_COUNT
    ),
    "the seal of the compiled policy is broken": Case(then(boring, break_seal)),
    "the policy was compiled by another version": Case(then(boring, by_another("tool", 0, "0.0.0"))),
    "the policy was compiled by another Python": Case(then(boring, by_another("tool", 2, 1))),
    "the program was written at another time": Case(then(boring, by_another("stamp", 1, 1))),
    "the program had another size": Case(then(boring, by_another("stamp", 2, 1))),
    "the program is another file": Case(then(boring, by_another("stamp", 3, 1))),
    "a NUL in the patch": Case(then(attributes("*.x diff"), named({"new.x": b"1\n\0\n"}))),
    "something between counts and patch": Case(boring, craft=replaced(b"\t1\ta\0\0", b"\t1\ta\0x\0")),
    "git ends in a line that holds the mark of its end": Case(
        boring, craft=replaced(b"\n\0whole", b"\0whole")
    ),
    "an added file can be executed": Case(in_index("new.sh", "100755")),
    "a symlink is added": Case(in_index("link", "120000")),
    "a file becomes executable": Case(in_index("a", "100755")),
    "a name that is not plain": Case(named({"a~1": "x\n"})),
    "a count that is no number": Case(boring, craft=replaced(b"1\t1\ta\0", b"+1\t1\ta\0")),
    "git calls the old side binary": Case(boring, craft=replaced(b"1\t1\ta\0", b"1\t-\ta\0")),
    "the counts are of another file": Case(boring, craft=replaced(b"1\t1\ta\0", b"1\t1\tb\0")),
    "a path of 4,100 bytes": Case(long_path),
    "outside the roots": Case(staged(b="2\n"), '[policy]\nallow_roots = ["src"]\n'),
    "a denied prefix": Case(named({"runs/x": "x\n"}), '[policy]\ndeny_prefixes = ["runs"]\n'),
    "a folder without a name": Case(
        named({"src/deep/c.py": "x = 2\n"}), craft=replaced(b"src/deep/c.py", b"src//c.py")
    ),
    "a name of 300 bytes": Case(in_index("n" * 300)),
    "attributes are added": Case(named({".gitattributes": "x\n"})),
    "a name that ends with a dot": Case(named({"file.": "x\n"})),
    "a denied beginning": Case(named({"secret-x": "x\n"}), '[policy]\ndeny = ["secret*"]\n'),
    "an owned path": Case(named({"infra/x": "x\n"}), '[policy]\n[[owners]]\npaths = ["infra/**"]\n'),
    "an owned name": Case(named({"a.tf": "x\n"}), '[policy]\n[[owners]]\npaths = ["@policy", "*.tf"]\n'),
    "a denied part": Case(named({"a-middle-x": "x\n"}), '[policy]\ndeny = ["*middle*"]\n'),
    "two new names but for case": Case(then(in_index("new"), in_index("NEW"))),
    "a neighbour beyond ASCII": Case(then(committed({"é": "x\n"}), staged(new="x\n"))),
    "a new name is a neighbour's but for case": Case(in_index("A")),
    "a new folder is another but for case": Case(in_index("src/new/e.py")),
    "nobody has answered for HEAD": Case(then(unanswered, boring)),
    "only another branch was told": Case(
        then(unanswered, told("{head} refs/heads/other\n{head} refs/heads/other"), boring)
    ),
    "a receipt of a longer id": Case(then(unanswered, receipt("{commit}0 {tree} {parent}\n"), boring)),
    "a receipt of longer ids": Case(then(unanswered, receipt("{commit}0 {tree}0 {parent}\n"), boring)),
    "a receipt of a short parent": Case(then(unanswered, receipt("{commit} {tree} 12\n"), boring)),
    "a receipt of letters": Case(then(unanswered, receipt("{commit} {tree} " + "z" * 40 + "\n"), boring)),
    "a receipt with a word more": Case(then(unanswered, receipt("{commit} {tree} {parent} x\n"), boring)),
    "a receipt that was torn": Case(then(unanswered, receipt("{commit} {tree} {parent}"), boring)),
    "a merge's receipt where something was let through": Case(
        then(unanswered, receipt("{commit} {tree} {parent} merge\n"), recorded("skipped"), boring)
    ),
    "a commit below was skipped": Case(below(recorded("skipped"))),
    "a commit below was observed": Case(below(recorded("observed"))),
    "a commit below was not judged": Case(below(recorded("unjudged"))),
    "the ledger is too long to look for what was let through": Case(
        below(kept("events.jsonl", b'{"kind":"refused"}\n' * 20_000))
    ),
    "a branch of origin by another kind of name": Case(then(unanswered, tagged, boring)),
    "a branch that ends like a description of HEAD": Case(then(unanswered, described, boring)),
    "what was told was torn": Case(then(unanswered, told("{head} refs/heads/main"), boring)),
    "a receipt with dashes for a tree": Case(
        then(unanswered, receipt("{commit} " + "-" * 40 + " -\n"), boring)
    ),
    "a receipt with dashes for a parent": Case(
        then(unanswered, receipt("{commit} {tree} " + "-" * 40 + "\n"), boring)
    ),
    "origin's default branch is a way to another folder": Case(
        then(unanswered, origin_has("HEAD", "ref: refs/remotes/../heads/main\n"), boring)
    ),
    "a ref of origin's that git calls broken": Case(
        then(unanswered, origin_has("main", "  {head}\n"), boring)
    ),
    "the branch is a symlink": Case(then(by_a_symlink, boring)),
    "the disk is full": Case(named(_LONG_NAMES), _NO_COUNT, is_disk_full=True),
    "a large file": Case(staged(big="x" * 2000 + "\n"), "[policy]\nmax_file_bytes = 1000\n"),
    "a denied word in other case": Case(staged(a="FORBIDDEN\n"), '[content]\ndeny = ["(?i)forbidden"]\n'),
    "git has not ended well": Case(boring, craft=unfinished),
    "HEAD is no commit": Case(boring, alter=instead(0, b" commit ", b" tag ")),
    "HEAD is another after its tree was read": Case(boring, alter=of_another(3)),
    "the branch is another than HEAD": Case(boring, alter=of_another(2)),
    "a merge waits": Case(then(boring, merging)),
    "another ref is trusted": Case(then(boring, trusting)),
    "another ref is trusted at home": Case(then(boring, trusting_at_home)),
    "another ref is trusted in XDG's config": Case(then(boring, trusting_in_xdg)),
    "another ref is trusted in this worktree": Case(then(boring, trusting_in_worktree)),
    "another ref is trusted by an include": Case(
        then(boring, including("[patchgate]\n\ttrustref = refs/heads/main\n"))
    ),
    "git cannot read a config that another includes": Case(
        then(boring, including("[a]\n\tb = c\n")),
        alter=lambda said: b"" if b"include.path" in said else said,
    ),
    "another worktree has an intent": Case(then(boring, with_an_intent)),
    "a command may be for a changed file": Case(
        boring, '[commands.x]\nkind = "lint"\ncommand = ["true"]\non = ["commit"]\n'
    ),
    "no config is there": Case(then(boring, without_config)),
    "the config is long": Case(then(boring, with_long_config)),
    "the branch is another one's name": Case(then(by_another_name, boring)),
    "a conflict marker": Case(staged(a="<<<<<<< HEAD\n")),
    "a deletion where there are components": Case(
        removed("b"), "[components.x]\ncontract = 'c'\ntests = ['t']\nimplementation = ['i']\n"
    ),
    "too many files": Case(staged(a="2\n", b="2\n"), "[policy.commit]\nmax_files = 1\n"),
    "too many added lines": Case(staged(a="2\n3\n"), "[policy.commit]\nmax_added_lines = 1\n"),
    "a new blob is a tree": Case(boring, alter=instead(1, b" blob ", b" tree ")),
    "an unchanged line with a NUL": Case(
        then(
            attributes("*.x diff"),
            committed({"c.x": b"\0\n1\n"}),
            named({"c.x": b"\0\n2\n"}),
        ),
        '[policy.commit]\ndeny_classes = ["binary"]\n',
    ),
    "a folder where a file was": Case(file_for_folder),
    "a text that looks like the start of a file, beside a rename": Case(
        moved_beside_a_marker,
        craft=replaced(b"\n+<<<<<<<", b"\ndiff --git \ndiff --git \n+<<<<<<<"),
    ),
}

# Which case needs which condition. A condition is named by its function and its text.
NEEDED: dict[str, str] = {
    'module: RECORDED has b\'"kind":"skipped"\'': "a commit below was skipped",
    'module: RECORDED has b\'"kind":"observed"\'': "a commit below was observed",
    'module: RECORDED has b\'"kind":"unjudged"\'': "a commit below was not judged",
    "listen: len(said) < MOST_BYTES": "five megabytes are staged",
    "take: said[size:size + 1] == b'\\n'": "the tree of HEAD is longer than was said",
    "ask: len(raw) < MOST_ASKED": "more blobs than a pipe holds",
    "entries: mode in ('100644', '100755', '120000', '160000', '40000')": "the tree of HEAD has an odd mode",
    "entries: last < key": "the tree of HEAD is not sorted",
    "entries: b'/' not in name": "the tree of HEAD has a slash in a name",
    "entries: len(dict(found)) == len(found)": "the tree of HEAD has a file and a folder of one name",
    "recognise: kind == b'tree'": "the folder of a changed file is no tree",
    "open_policy: kept[:8] == source_hash(SEAL, kept[8:])": "the seal of the compiled policy is broken",
    "open_policy: policy['tool'][::2] == (version, sys.hexversion), element 1 (version)": (
        "the policy was compiled by another version"
    ),
    "open_policy: policy['tool'][::2] == (version, sys.hexversion), element 2 (sys.hexversion)": (
        "the policy was compiled by another Python"
    ),
    "read_difference: len(words) == at + (2 if files else 1)": "a NUL in the patch",
    "read_difference: not words[at]": "something between counts and patch",
    "read_difference: words[-1][-1:] in (b'', b'\\n')": "git ends in a line that holds the mark of its end",
    "read_difference: b' '.join((old_mode, new_mode, status)) in FORMS": "an added file can be executed",
    "read_difference: not path.translate(None, PLAIN)": "a name that is not plain",
    "read_difference: count.isdigit()": "a count that is no number",
    "read_difference: removed.isdigit()": "git calls the old side binary",
    "read_difference: name == path": "the counts are of another file",
    "check_names: policy['roots'] is None or path.startswith(roots)": "outside the roots",
    "check_names: not small.startswith(prefixes)": "a denied prefix",
    "check_names: part.rstrip('. ') not in ('', '.git')": "a folder without a name",
    "check_names: len(part) <= 255": "a name of 300 bytes",
    "check_names: part not in policy['names']": "attributes are added",
    "check_names: not part.endswith(policy['endings'])": "a name that ends with a dot",
    "check_names: not part.startswith(policy['beginnings'])": "a denied beginning",
    "check_names: not any((each in part for each in policy['parts']))": "a denied part",
    "check_collisions: len(kept) == len(names)": "two new names but for case",
    "check_collisions: b''.join(neighbours).isascii()": "a neighbour beyond ASCII",
    "check_collisions: all((kept.get((above + each).lower(), above + each) == above + each"
    " for each in neighbours))": "a new name is a neighbour's but for case",
    "check_answered: reported if line[width:] == b' ' + branch": "only another branch was told",
    "check_answered: len(oid) == len(tree)": "a receipt of a longer id",
    "check_answered: len(tree) == width": "a receipt of longer ids",
    "check_answered: parent == b'-' or len(parent) == width": "a receipt of a short parent",
    "check_answered: not (tree + parent.removeprefix(b'-')).translate(None, b'0123456789abcdef')": (
        "a receipt of letters"
    ),
    "check_answered: merge in ([], [b'merge'])": "a receipt with a word more",
    "check_answered: not merge": "a merge's receipt where something was let through",
    "check_answered: while head not in stops": "nobody has answered for HEAD",
    "check_answered: return if not has_records": "a commit below was skipped",
    "check_answered: has_records if any((kind in events for kind in RECORDED))": "a commit below was skipped",
    "check_answered: has_records if len(events) == WHOLE_FILE": (
        "the ledger is too long to look for what was let through"
    ),
    "leave: posix.write(descriptor, content) == len(content)": "the disk is full",
    "recognise: new if status == b'A'": "a new name is a neighbour's but for case",
    "recognise: blobs if status != b'D'": "a large file",
    "recognise: {b'': list(root)} if new else {}": "a new name is a neighbour's but for case",
    "read_difference: words.pop() == ENDED": "git has not ended well",
    "recognise: kind == b'commit'": "HEAD is no commit",
    "recognise: [take(said)[0], take(said)[0]] == [head, head], element 1 (head)": (
        "the branch is another than HEAD"
    ),
    "recognise: [take(said)[0], take(said)[0]] == [head, head], element 2 (head)": (
        "HEAD is another after its tree was read"
    ),
    "recognise_staged: not posix.access(git_dir + '/MERGE_HEAD', posix.F_OK)": "a merge waits",
    "check_trust: files[0]": "no config is there",
    "check_intents: not any((name.endswith('.json') for name in posix.listdir(folder)))": (
        "another worktree has an intent"
    ),
    "check_trust: max(map(len, files)) < WHOLE_FILE": "the config is long",
    "check_trust: b'trustref' not in said": "another ref is trusted",
    "check_trust: b'core.' in said": "git cannot read a config that another includes",
    "recognise_staged: not read(f'{common_dir}/{ref}').startswith(b'ref:')": (
        "the branch is another one's name"
    ),
    "recognise: not any((text in patch for text in policy['texts']))": "a conflict marker",
    "recognise: not (small := policy['small_texts']) or not any(map(patch.lower().__contains__, small))": (
        "a denied word in other case"
    ),
    "recognise: not policy['has_components'] or len(blobs) == len(files)": (
        "a deletion where there are components"
    ),
    "recognise: policy['max_files'] is None or len(files) <= policy['max_files']": "too many files",
    "recognise: policy['max_added_lines'] is None or added <= policy['max_added_lines']": (
        "too many added lines"
    ),
    "recognise: kind == b'blob'": "a new blob is a tree",
    "recognise: policy['max_file_bytes'] is None or size <= policy['max_file_bytes']": "a large file",
    "recognise: not any((b'\\x00' in take(said, with_content=True)[3][:8000] for _ in blobs))": (
        "an unchanged line with a NUL"
    ),
    "recognise: kind in (b'tree', b'missing')": "a folder where a file was",
} | {
    "open_policy: policy['stamp'][1:] == (status.st_mtime_ns, status.st_size, status.st_ino), "
    f"element {number} (status.st_{field})": case
    for number, field, case in (
        (1, "mtime_ns", "the program was written at another time"),
        (2, "size", "the program had another size"),
        (3, "ino", "the program is another file"),
    )
}

# Conditions that no case can need, each with the reason why it stays.
STAYS: dict[str, str] = {}
