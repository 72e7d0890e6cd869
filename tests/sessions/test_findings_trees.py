"""A malformed tree passes no door: of each such tree readers see different files, so no verdict binds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.push_world import write_hook
from tests.malformed import FILE, FOLDER, MALFORMED, blob, commit_of, ordered, put, rows_of, tree
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

POLICY = """\
[policy]
deny_prefixes = ["runs"]
[policy.commit]
allow_symlinks = true
allow_gitlinks = true
"""
WEAK = b"[policy]\n"


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo.create(tmp_path_factory.mktemp("trees"))
    repo.policy(POLICY)
    repo.commit({"runs/record": "kept\n", "src/app.py": "x = 1\n"})
    return repo


def _is_kept_out(repo: Repo, *arguments: str) -> str:
    answer = repo.cli("check", *arguments)
    assert answer.code in {1, 3}, answer.out + answer.err
    assert "Traceback" not in answer.err
    return answer.out + answer.err


@pytest.mark.parametrize("name", MALFORMED)
def test_a_commit_with_a_malformed_tree_is_never_accepted(seed: Repo, name: str) -> None:
    parent = seed.head()
    bad = commit_of(seed, MALFORMED[name](seed, rows_of(seed, "HEAD")), parent)
    said = _is_kept_out(seed, bad)
    assert "\0" not in said
    _is_kept_out(seed, "--policy-from", parent, f"{parent}..{bad}")
    good = commit_of(seed, seed.ask("rev-parse", "HEAD^{tree}"), bad)
    _is_kept_out(seed, f"{parent}..{good}")


def test_the_message_names_the_tree_its_place_and_the_commit(seed: Repo) -> None:
    inner = tree(seed, [(FILE, b"b", blob(seed, b"1\n")), (FILE, b"a", blob(seed, b"1\n"))])
    root = tree(seed, ordered([*rows_of(seed, "HEAD"), (FOLDER, b"new", inner)]))
    bad = commit_of(seed, root, seed.head())
    said = _is_kept_out(seed, bad)
    assert f"tree {inner[:12]} (folder new of commit {bad[:12]})" in said
    assert "not sorted" in said
    assert "git fsck" in said


def made(folder: Path, policy: str = POLICY) -> Repo:
    repo = Repo.create(folder)
    repo.policy(policy)
    repo.commit({"runs/record": "kept\n", "src/app.py": "x = 1\n", "src/deep/b.py": "y = 1\n"})
    return repo


def with_two_policies(repo: Repo) -> str:
    """The finding: the strict policy, which `git show` prints, and then a weak one."""
    rows = rows_of(repo, "HEAD")
    place = next(index for index, row in enumerate(rows) if row[1] == b"patchgate.toml")
    rows.insert(place + 1, (FILE, b"patchgate.toml", blob(repo, WEAK)))
    return commit_of(repo, tree(repo, rows), repo.head())


def test_a_second_policy_in_one_tree_is_obeyed_at_no_door(tmp_path: Path) -> None:
    repo = made(tmp_path)
    good = repo.head()
    bad = with_two_policies(repo)
    assert repo.git("show", f"{bad}:patchgate.toml").decode() == POLICY
    change = repo.commit({"runs/record": "changed\n"})
    later = commit_of(repo, tree(repo, rows_of(repo, change)), bad)
    patch = tmp_path / "change.patch"
    patch.write_bytes(repo.git("diff", good, change))
    repo.git("reset", "-q", "--hard", good)
    asked = [
        (bad,),
        (f"{good}..{later}",),
        (f"{bad}..{later}",),
        ("--policy-from", bad, change),
        ("--patch", str(patch), "--base", bad),
    ]
    for arguments in asked:
        said = _is_kept_out(repo, *arguments)
        assert "patchgate.toml twice" in said, arguments
    assert repo.cli("verify", "--base", bad).code != 0
    # Now HEAD is malformed itself: what is staged, all of it, the working tree, and what is applied.
    repo.git("update-ref", "--no-deref", "HEAD", bad)
    repo.stage({"runs/record": "changed\n"})
    for arguments in ((), ("--worktree",), ("--all",), ("--patch", str(patch))):
        assert "patchgate.toml twice" in _is_kept_out(repo, *arguments), arguments
    assert repo.cli("apply", str(patch)).code != 0


def test_a_push_of_a_malformed_tree_lands_on_no_server_and_leaves_no_machine(tmp_path: Path) -> None:
    repo = made(tmp_path)
    server = repo.at(tmp_path / "server.git")
    repo.git("init", "-q", "--bare", "-b", "main", str(server.path))
    server.git("config", "transfer.fsckObjects", "false")
    repo.git("push", "-q", str(server.path), "main")
    old = server.ask("rev-parse", "main")
    bad = [with_two_policies(repo)]
    rows = rows_of(repo, "HEAD")
    names = ("not sorted", "a file and a folder of one name", "a zero-padded folder")
    bad += [commit_of(repo, MALFORMED[name](repo, rows), repo.head()) for name in names]
    pre_receive = server.path / "hooks" / "pre-receive"
    write_hook(pre_receive, "hooks.pre_receive", "judge_receive")
    for commit in bad:
        assert repo.try_git("push", str(server.path), f"{commit}:refs/heads/main").returncode != 0
        assert repo.try_git("push", str(server.path), f"{commit}:refs/heads/side").returncode != 0
        assert "malformed" in pre_receive.with_name("pre-receive.said").read_text()
    assert server.ask("for-each-ref", "--format=%(objectname) %(refname)") == f"{old} refs/heads/main"
    pre_receive.unlink()
    write_hook(repo.path / ".git" / "hooks" / "pre-push", "hooks.pre_push", "judge_push")
    for commit in bad:
        assert repo.try_git("push", str(server.path), f"{commit}:refs/heads/main").returncode != 0
    assert server.ask("rev-parse", "main") == old


def test_no_branch_gets_a_malformed_tree_and_none_is_committed_on_it(tmp_path: Path) -> None:
    repo = made(tmp_path)
    repo.install()
    old = repo.head()
    bad = with_two_policies(repo)
    done = repo.try_git("update-ref", "refs/heads/main", bad)
    assert done.returncode != 0
    assert b"malformed" in done.stderr
    assert repo.ask("rev-parse", "main") == old
    # One that is there from before the hooks: the fast path hands on a change below a malformed folder.
    inner = rows_of(repo, "HEAD:src")
    twice = tree(repo, [*inner[:1], (FILE, b"app.py", blob(repo, b"x = 2\n")), *inner[1:]])
    root = tree(repo, [row if row[1] != b"src" else (FOLDER, b"src", twice) for row in rows_of(repo, "HEAD")])
    (repo.path / ".git" / "refs" / "heads" / "main").write_text(commit_of(repo, root, old) + "\n")
    repo.git("read-tree", old)
    repo.stage({"src/app.py": "x = 3\n"})
    done = repo.try_git("commit", "-m", "Change")
    assert done.returncode != 0
    assert b"app.py twice" in done.stderr


@pytest.mark.parametrize("full", [False, True], ids=["fast path", "full tier"])
@pytest.mark.parametrize("form", ["two names in one", "unsorted"])
def test_git_commits_no_malformed_tree_that_it_keeps_beside_the_index(
    tmp_path: Path, form: str, full: bool
) -> None:
    """Its entries look harmless in the index, so pre-commit sees another tree than git commits."""
    repo = made(tmp_path)
    repo.install()
    old = repo.head()
    new = (FILE, b"docs/x" if form == "two names in one" else b"aa", blob(repo, b"new\n"))
    rows = [*rows_of(repo, "HEAD"), new]
    repo.git("read-tree", tree(repo, ordered(rows) if form == "two names in one" else rows))
    done = repo.try_git("commit", "-m", "Add a file", PATCHGATE_FULL="1" if full else "")
    assert done.returncode != 0, repo.ask("log", "-1", "--format=%T")
    assert b"malformed" in done.stderr
    assert repo.ask("rev-parse", "main") == old


def test_a_malformed_merge_and_one_of_malformed_parents_is_undecided(tmp_path: Path) -> None:
    repo = made(tmp_path)
    base = repo.head()
    one = repo.commit({"one": "1\n"})
    repo.git("reset", "-q", "--hard", base)
    other = repo.commit({"other": "1\n"})
    rows = ordered([*rows_of(repo, one), (FILE, b"other", blob(repo, b"1\n"))])
    good = commit_of(repo, tree(repo, rows), one, other)
    assert repo.cli("check", good).code == 0
    merged = commit_of(repo, MALFORMED["a name twice"](repo, rows), one, other)
    assert "twice" in _is_kept_out(repo, merged)
    repo.git("reset", "-q", "--hard", base)
    bad = with_two_policies(repo)
    _is_kept_out(repo, commit_of(repo, tree(repo, rows), one, bad))


def test_what_git_wrote_in_its_first_year_is_still_judged(seed: Repo) -> None:
    parent = seed.head()
    rows = [*rows_of(seed, "HEAD"), (b"100664", b"zz", blob(seed, b"old\n"))]
    assert seed.cli("check", commit_of(seed, tree(seed, rows), parent)).code == 0
    padded = [(b"040000" if row[0] == FOLDER else row[0], *row[1:]) for row in rows_of(seed, "HEAD")]
    old = commit_of(seed, tree(seed, padded), parent)
    mended = commit_of(seed, seed.ask("rev-parse", "HEAD^{tree}"), old)
    assert seed.cli("check", mended).code == 0


def test_a_malformed_tree_that_a_change_does_not_touch_is_not_read(tmp_path: Path) -> None:
    repo = made(tmp_path)
    bad = tree(repo, [(FILE, b"b", blob(repo, b"1\n")), (FILE, b"a", blob(repo, b"1\n"))])
    before = tree(repo, ordered([*rows_of(repo, "HEAD"), (FOLDER, b"old", bad)]))
    first = commit_of(repo, before, repo.head())
    after = tree(repo, ordered([*rows_of(repo, before), (FILE, b"new", blob(repo, b"1\n"))]))
    assert repo.cli("check", commit_of(repo, after, first)).code == 0
    gone = [row for row in rows_of(repo, after) if row[1] != b"old"]
    assert "folder old" in _is_kept_out(repo, commit_of(repo, tree(repo, gone), first))


@pytest.mark.parametrize(
    "header",
    ["tree {root}\ntree {other}\n{parent}{who}", "{parent}tree {root}\n{who}", "tree {root}\n{parent}"],
    ids=["two trees", "the parent first", "no author"],
)
def test_a_malformed_commit_is_judged_by_what_git_reads_of_it_or_not_at_all(seed: Repo, header: str) -> None:
    parent = seed.head()
    bad = ordered([*rows_of(seed, "HEAD"), (FILE, b"zz", blob(seed, b"1\n"))])
    inner = tree(seed, [(FILE, b"record", blob(seed, b"changed\n"))])
    root = tree(seed, [row if row[1] != b"runs" else (FOLDER, b"runs", inner) for row in bad])
    who = "author A <a> 1 +0000\ncommitter A <a> 1 +0000\n"
    text = header.format(root=root, other=f"{parent}^{{tree}}", parent=f"parent {parent}\n", who=who)
    commit = put(seed, "commit", (text + "\nChange\n").encode("ascii"))
    answer = seed.cli("check", commit)
    assert answer.code != 0
    assert "Traceback" not in answer.err


def test_two_parents_of_one_id_are_one(seed: Repo) -> None:
    parent = seed.head()
    inner = tree(seed, [(FILE, b"record", blob(seed, b"changed\n"))])
    root = tree(
        seed, [row if row[1] != b"runs" else (FOLDER, b"runs", inner) for row in rows_of(seed, "HEAD")]
    )
    assert "deny-prefix" in _is_kept_out(seed, commit_of(seed, root, parent, parent))
