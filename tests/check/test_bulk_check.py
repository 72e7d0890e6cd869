"""Clearing boring commits in bulk: the same verdicts as one by one, also on histories made to deceive it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from patchgate.check import bulk_check
from patchgate.check.bulk_check import BulkCheck, check_range
from patchgate.check.commits import CommitHistory, check_revision
from patchgate.check.policy_lookup import CheckOptions
from patchgate.errors import UndecidedError
from patchgate.git import bulk_diff, commit_lists, diff, history, merge_paths, tree_chain
from patchgate.git.bulk_diff import BlobFacts, differences
from patchgate.git.commit_lists import list_commits
from patchgate.git.history import Walk
from patchgate.git.merge_paths import CarryLimit
from patchgate.git.repository import open_repository
from patchgate.values import replace
from tests.amount import IS_LONG
from tests.check.bulk_against_one_by_one import compare_history
from tests.malformed import FILE, FOLDER, blob, commit_of, ordered, put, rows_of, tree
from tests.world import Repo

pytestmark = pytest.mark.turns(3)
_SECRET = "AKIA" + "QWERTYUIOPASDFGH\n"
BULK = CheckOptions(in_bulk=True)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.create(tmp_path)


def _left(repo: Repo, asked: CheckOptions = BULK) -> list[str]:
    """Name the subjects of the commits that are not cleared."""
    repository = open_repository(repo.env, str(repo.path))
    commits = list_commits(repository, "--topo-order", "--reverse", "HEAD")
    with Walk(repository, commits) as walk:
        rest = BulkCheck(repository, asked).rest(walk, CommitHistory(walk, asked), commits)
    return [repo.ask("log", "-1", "--format=%s", commit.oid) for commit in rest]


def _rules(repo: Repo, first: str) -> tuple[str, list[tuple[str, str]]]:
    """Check all commits after one in bulk; give the verdict, and commit and rule of each finding."""
    report = check_range(open_repository(repo.env, str(repo.path)), f"{first}..HEAD", BULK)
    found = [(each.source.commit or "", finding.rule) for each in report.changes for finding in each.findings]
    return report.verdict.value, found


@pytest.mark.parametrize("seed", range(300 if IS_LONG else 3))
def test_a_random_history_is_judged_alike_in_bulk_and_one_by_one(tmp_path: Path, seed: int) -> None:
    found = list(compare_history(tmp_path, seed))
    assert all(each.cleared <= each.commits for each in found)


def test_a_random_history_is_judged_alike_in_small_blocks_by_two_children_that_remember_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_diff, "_IN_TURN", 2)
    monkeypatch.setattr(bulk_diff, "_processors", lambda: 2)
    monkeypatch.setattr(bulk_check, "_PROVED_AT_ONCE", 3)
    monkeypatch.setattr(tree_chain, "_MOST_OPEN", 4_000)
    monkeypatch.setattr(tree_chain, "_MOST_BYTES", 8_000)
    found = list(compare_history(tmp_path, 7))
    assert sum(each.cleared for each in found) > 0


def test_two_children_answer_in_the_order_of_the_pairs_and_end_where_one_of_them_does(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_diff, "_IN_TURN", 2)
    repository = open_repository(repo.env, str(repo.path))
    trees = [tree(repo, [(FILE, b"a", blob(repo, b"%d\n" % number))]) for number in range(8)]
    pairs = [f"{one} {other}" for one, other in pairwise(trees)]
    empty = repo.ask("hash-object", "-t", "tree", "/dev/null")

    def answers(number: int) -> list[bytes | None]:
        monkeypatch.setattr(bulk_diff, "_processors", lambda: number)
        return [*differences(repository, pairs, empty, {}, with_patch=True)]

    alone = answers(1)
    assert len(alone) == 7
    assert answers(2) == alone
    # The second child dies over the second block: nothing after that counts, whatever the first one says.
    pairs[3] = f"{trees[3]} {'1' * 40}"
    found = answers(2)
    assert 2 <= len(found) <= 3
    assert found == alone[: len(found)]


def test_git_is_asked_about_any_number_of_blobs_at_once(repo: Repo) -> None:
    """The pipes hold some thousand questions and answers: neither side waits for the other."""
    one, missing = blob(repo, b"one\n").encode(), b"1" * 40
    with BlobFacts(open_repository(repo.env, str(repo.path))) as blobs:
        blobs.ask([one] * 20_000)
        blobs.ask([missing, one])
        assert blobs.answers(20_000) == [b"blob 4"] * 20_000
        assert blobs.answers(2) == [missing + b" missing", b"blob 4"]


def test_an_added_name_is_compared_with_those_that_earlier_commits_added(repo: Repo) -> None:
    repo.commit({"src/x.py": "x\n", "lib/\u00e9.py": "x\n"}, "Start")
    for number, name in enumerate(["src/a.py", "src/b/c.py", "src/A.py", "src/d.py", "lib/a.py"]):
        repo.commit({name: "x\n"}, f"Add {number}")
    repo.git("rm", "-q", "src/A.py")
    repo.commit({}, "Remove")
    repo.commit({"src/B/d.py": "x\n"}, "A folder")
    repo.commit({"src/x.py": "y\n"}, "Change")
    # What comes after a name that collides is judged one by one, too, as long as that is there.
    assert _left(repo) == ["Start", "Add 2", "Add 3", "Add 4", "A folder"]


@pytest.mark.parametrize("seed", range(100, 150 if IS_LONG else 101))
def test_merges_whose_bases_are_before_the_range_are_judged_alike(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_FEW", -1)
    monkeypatch.setattr(bulk_check, "_MERGES_AT_ONCE", 2)
    assert list(compare_history(tmp_path, seed))


def test_a_merge_in_an_earlier_block_does_not_decide_for_commits_without_a_policy(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge into a line without a policy is judged by what it merges, a commit on that line is not."""
    monkeypatch.setattr(commit_lists, "AT_ONCE", 4)
    monkeypatch.setattr(commit_lists, "_READ_AT_ONCE", 100)
    root = repo.commit({"a": "0\n"})
    first = repo.commit({"a": "1\n"})
    repo.stage({"patchgate.toml": "[content]\nsecrets = false\nconflict_markers = false\n"})
    tree = repo.ask("write-tree")
    policy = repo.ask("commit-tree", tree, "-p", first, "-p", root, "-m", "Policy")
    last = repo.ask("commit-tree", tree, "-p", first, "-p", policy, "-m", "Merge")
    for number in range(8):
        last = repo.ask("commit-tree", tree, "-p", last, "-m", f"Empty {number}")
    repo.git("reset", "-q", "--hard", first)
    bad = repo.commit({"c": _SECRET})
    repo.git("reset", "-q", "--hard", last)
    repo.git("merge", "-q", "--no-edit", "--no-ff", bad)
    listed = repo.ask("rev-list", "--topo-order", "--reverse", f"{first}..HEAD").split()
    assert listed.index(bad) > listed.index(policy) + 4
    assert _rules(repo, first) == ("rejected", [(bad, "secret")])


def test_boring_commits_are_cleared_and_counted_and_the_others_have_a_verdict(repo: Repo) -> None:
    first = repo.commit({"src/a.py": "one\n", "src/b.py": "one\n"})
    repo.commit({"src/a.py": "two\n"})
    repo.commit({"src/c.py": "new\n"})
    bad = repo.commit({"src/a.py": _SECRET})
    repo.git("rm", "-q", "src/b.py")
    repo.commit({})
    opened = open_repository(repo.env, str(repo.path))
    report = check_range(opened, f"{first}..HEAD", BULK)
    assert [each.source.commit for each in report.changes] == [bad]
    assert report.cleared is not None
    assert (report.cleared.number, report.n_judged) == (3, 4)
    assert report.cleared.paths == {b"src/a.py", b"src/b.py", b"src/c.py"}
    one_by_one = check_revision(opened, f"{first}..HEAD", CheckOptions())
    assert report.verdict == one_by_one.verdict
    assert report.changes[0] == one_by_one.changes[2]


@pytest.mark.parametrize(
    ("subject", "files"),
    [
        ("a secret", {"src/a.py": _SECRET}),
        ("a marker", {"src/a.py": "<<<<<<< HEAD\n"}),
        ("a lock file", {"uv.lock": "x\n"}),
        ("a control file", {"patchgate.toml": "[policy]\n"}),
        ("a name that collides", {"src/A.py": "x\n"}),
        ("a name that is not plain", {"src/\u00e9.py": "x\n"}),
        ("a binary file", {"src/x.dat": b"nul\0inside\n"}),
        ("many lines", {"src/a.py": "line\n" * 2_001}),
        ("many files", {f"src/{number}.py": "x\n" for number in range(51)}),
        ("a large file", {"src/a.py": "x" * (1 << 20) + "\n"}),
    ],
)
def test_a_commit_that_a_rule_may_say_something_about_is_left(
    repo: Repo, subject: str, files: dict[str, str | bytes]
) -> None:
    repo.commit({"src/a.py": "one\n", "top.py": "one\n"}, message="First")
    repo.commit({"src/a.py": "two\n"}, message="Boring")
    repo.commit(files, message=subject)
    repo.commit({"top.py": "two\n"}, message="Boring again")
    assert _left(repo) == ["First", subject]


def test_an_agents_commit_is_left_and_another_with_trailers_is_not(repo: Repo) -> None:
    repo.commit({"a": "one\n"}, message="First")
    repo.commit({"a": "two\n"}, message="Signed\n\nSigned-off-by: A <a@example.com>")
    repo.commit({"a": "three\n"}, message="Agent\n\nPatchgate-Profile: agent")
    assert _left(repo) == ["First", "Agent"]


def test_the_policy_after_a_change_of_it_judges_what_follows(repo: Repo) -> None:
    repo.commit({"a": "one\n"}, message="First")
    repo.commit({"a": "two\n"}, message="Free")
    repo.commit({"patchgate.toml": '[policy]\ndeny_prefixes = ["a"]\n'}, message="Policy")
    repo.commit({"a": "three\n"}, message="Denied")
    repo.commit({"b": "one\n"}, message="Free again")
    assert _left(repo) == ["First", "Policy", "Denied"]


def test_nothing_is_cleared_where_an_attribute_may_hide_that_a_file_is_binary(repo: Repo) -> None:
    repo.commit({"a": "one\n"}, message="First")
    repo.commit({"a": "two\n"}, message="Boring")
    assert _left(repo) == ["First"]
    folder = repo.path / ".git" / "info"
    folder.mkdir(exist_ok=True)
    (folder / "attributes").write_text("* diff\n", encoding="ascii")
    assert _left(repo) == ["First", "Boring"]


def test_nothing_is_cleared_in_a_history_with_components(repo: Repo) -> None:
    component = '[components.one]\ncontract = "one/interface.json"\nimplementation = ["one/**"]\n'
    first = repo.commit({"patchgate.toml": component}, message="First")
    repo.commit({"a": "two\n"}, message="Beside it")
    assert _left(repo) == ["First", "Beside it"]
    report = check_range(open_repository(repo.env, str(repo.path)), f"{first}..HEAD", BULK)
    assert report.cleared is None


@pytest.mark.parametrize("fault", ["unsorted", "twice", "padded mode"])
def test_a_malformed_tree_is_refused_although_its_difference_looks_boring(repo: Repo, fault: str) -> None:
    first = repo.commit({"src/a.py": "one\n", "src/b.py": "one\n", "lib/c.py": "x\n"})
    rows = rows_of(repo, f"{first}:src")
    changed = [(FILE, b"a.py", blob(repo, b"two\n")), *rows[1:]]
    if fault == "unsorted":
        changed = [*changed, (FILE, b"0.py", blob(repo, b"new\n"))]
    elif fault == "twice":
        changed = [*changed, changed[-1]]
    folder = tree(repo, changed)
    root = [(mode, name, folder if name == b"src" else oid) for mode, name, oid in rows_of(repo, first)]
    if fault == "padded mode":
        root = [
            (b"0" + mode if mode == FOLDER and name == b"lib" else mode, name, oid)
            for mode, name, oid in root
        ]
    made = commit_of(repo, tree(repo, ordered(root)), first)
    repo.git("update-ref", "HEAD", made)
    with pytest.raises(UndecidedError, match="malformed"):
        _rules(repo, first)


def test_an_object_that_is_no_blob_is_not_cleared_as_a_file(repo: Repo) -> None:
    first = repo.commit({"a": "one\n", "b": "one\n"})
    commit = put(repo, "commit", repo.git("cat-file", "commit", first))
    root = [(mode, name, commit if name == b"a" else oid) for mode, name, oid in rows_of(repo, first)]
    repo.git("update-ref", "HEAD", commit_of(repo, tree(repo, root), first))
    with pytest.raises(UndecidedError, match="not a blob"):
        _rules(repo, first)


def test_a_removed_line_that_looks_like_gits_own_hides_nothing(repo: Repo) -> None:
    """Both later trees are known before the first one, whose file can contain the line between them."""
    start = repo.commit({"a": "one\n", "z": "one\n"})
    second = tree(repo, [(FILE, b"a", blob(repo, b"clean\n")), (FILE, b"z", blob(repo, _SECRET.encode()))])
    third = tree(repo, [(FILE, b"a", blob(repo, b"clean again\n")), (FILE, b"z", blob(repo, b"gone\n"))])
    line = f"{second} {third}\n".encode("ascii")
    for text in (line, b"\0" + line, b"\n" + line, b"\r" + line):
        first = tree(repo, [(FILE, b"a", blob(repo, b"x" * 9_000 + text)), (FILE, b"z", blob(repo, b"z\n"))])
        tip = start
        for root in (first, second, third):
            tip = commit_of(repo, root, tip)
        repo.git("update-ref", "HEAD", tip)
        parent = repo.ask("rev-parse", "HEAD~1")
        verdict, found = _rules(repo, start)
        assert verdict == "rejected"
        assert found == [(parent, "secret")]


def test_check_says_of_a_range_in_bulk_what_it_says_one_by_one(repo: Repo) -> None:
    first = repo.commit({"a": "one\n", "b": "one\n"})
    for number in range(3):
        repo.commit({"a": f"{number}\n"})
    repo.commit({"b": _SECRET})
    range_ = f"{first}..HEAD"
    in_bulk, each = repo.cli("check", range_), repo.cli("check", "-v", range_)
    assert in_bulk.code == each.code == 1
    assert in_bulk.out.splitlines()[-2:] == each.out.splitlines()[-2:]
    assert len(repo.check(range_).changes) == 4


def test_sarif_of_a_range_has_its_findings_and_how_many_commits_were_cleared(repo: Repo) -> None:
    first = repo.commit({"a": "one\n"})
    for number in range(3):
        repo.commit({"a": f"{number}\n"})
    bad = repo.commit({"b": _SECRET})
    answer = repo.cli("check", f"{first}..HEAD", "--format", "sarif")
    (run,) = json.loads(answer.out)["runs"]
    assert [(each["ruleId"], each["properties"]["commit"]) for each in run["results"]] == [("secret", bad)]
    assert [each["commit"] for each in run["properties"]["changes"]] == [bad]
    assert (answer.code, run["properties"]["cleared"]) == (1, 3)


@pytest.mark.parametrize(
    ("changes", "most", "fails"),
    [
        ([{f"{name}/f": "same\n" for name in "bcdef"}], 5, True),
        ([{f"{name}/f": "same\n" for name in "bcdef"}], 6, False),
        # Every second change takes back the one before it.
        ([{f"{name}/f": f"{name}{number % 2}\n" for name in "bcd"} for number in range(8)], 20, True),
        # A new content for each file, however often.
        ([{f"{name}/f": f"{name}{number}\n" for name in "bcd"} for number in range(8)], 0, False),
    ],
)
def test_the_large_changes_of_a_push_have_a_limit_for_files_of_few_contents(
    changes: list[dict[str, str]], most: int, fails: bool, repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repo.commit({"a": "x\n"})
    for files in changes:
        repo.commit(files)
    monkeypatch.setattr(diff, "_LARGE", 2)
    monkeypatch.setattr(diff, "_MOST_REPEATED", {2: most})
    opened = open_repository(repo.env, str(repo.path))
    assert len(check_revision(opened, f"{first}..HEAD", CheckOptions()).changes) == len(changes)
    received = open_repository(repo.env | {"GIT_QUARANTINE_PATH": "x"}, str(repo.path))
    for limited in (received, replace(opened, trusts_caches=False)):
        with pytest.raises(UndecidedError) if fails else nullcontext():
            check_revision(limited, f"{first}..HEAD", CheckOptions())


def test_a_server_looks_at_few_changes_in_bulk_that_are_too_large_for_it(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = repo.commit({"a": "x\n"})
    for number in range(8):
        repo.commit({"a": f"{number}\n" * 40})
    monkeypatch.setattr(bulk_diff, "MOST_BYTES", 100)
    monkeypatch.setattr(bulk_diff, "_BLOCK", 100)
    answers: list[bytes | None] = []

    def counting(*asked: Any, **named: Any) -> Iterator[bytes | None]:
        for answer in differences(*asked, **named):
            answers.append(answer)
            yield answer

    monkeypatch.setattr(bulk_check, "differences", counting)
    for most, looked in ((4, 5), (8, 8)):
        monkeypatch.setattr(bulk_check, "_MOST_TOO_LARGE", most)
        answers.clear()
        received = open_repository(repo.env | {"GIT_QUARANTINE_PATH": "x"}, str(repo.path))
        assert len(check_range(received, f"{first}..HEAD", BULK).changes) == 8
        assert answers == [None] * looked


def test_many_merges_that_differ_in_many_files_are_asked_for_in_parts(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"a": "x\n", "b": "x\n", "c/d": "x\n"})
    for number in range(5):
        repo.git("checkout", "-q", "-b", f"topic{number}", "HEAD~1" if number else "HEAD")
        repo.commit({f"f{number}": "x\n"})
        repo.git("checkout", "-q", "main")
        repo.commit({"c/d": f"{number}\n"})
        repo.git("merge", "-q", "--no-ff", "-m", "Merge", f"topic{number}")
    merges = repo.ask("rev-list", "--merges", "HEAD").split()
    opened = open_repository(repo.env, str(repo.path))
    limit = CarryLimit(len(merges))
    expected = merge_paths.touched_paths(opened, merges, limit)
    assert list(expected) == merges
    monkeypatch.setattr(merge_paths, "_MOST_OF_MANY", 500)
    assert merge_paths.touched_paths(opened, merges, limit) == expected
    # Whoever pushes may not choose how long it takes.
    assert merge_paths.touched_paths(opened, merges, CarryLimit(seconds=-1)) == expected
    with pytest.raises(UndecidedError, match="too long"):
        merge_paths.touched_paths(replace(opened, trusts_caches=False), merges, CarryLimit(seconds=-1))
    monkeypatch.setattr(merge_paths, "DEFAULT_OUTPUT", 100)
    with pytest.raises(UndecidedError, match="wrote more"):
        merge_paths.touched_paths(opened, merges, limit)


def test_trees_that_git_calls_equal_are_not_cleared(repo: Repo) -> None:
    first = repo.commit({"a": "x\n"})
    oid = repo.ask("rev-parse", "HEAD:a")
    raw = b"100664 a\0" + bytes.fromhex(oid)
    odd = put(repo, "tree", raw)
    last = commit_of(repo, odd, first)
    repo.git("update-ref", "HEAD", last)
    report = check_range(open_repository(repo.env, str(repo.path)), f"{first}..HEAD", BULK)
    assert ([each.source.commit for each in report.changes], report.cleared) == ([last], None)
