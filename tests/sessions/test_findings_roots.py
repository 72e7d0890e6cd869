"""Only the first commit of a repository has no budget; a root that comes later is judged like any commit."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from patchgate.git.repository import Repository, open_repository
from patchgate.hooks.pre_push import judge_push
from patchgate.hooks.pre_receive import judge_receive
from patchgate.hooks.reference_transaction import judge_transaction
from patchgate.report.verdict import Report
from tests.world import Content, Repo

pytestmark = pytest.mark.turns(3)

ZERO = "0" * 40
LIMIT = "[policy]\ndeny_prefixes = ['runs']\n[policy.commit]\nmax_files = 3\n[rules]\nmax-files = 'error'\n"
MANY: dict[str, Content] = {f"many/f{number}": "x\n" for number in range(9)}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a budget of three files, whose first commit had more."""
    made = Repo.create(tmp_path)
    made.commit({**{f"old/f{number}": "x\n" for number in range(9)}, "patchgate.toml": LIMIT}, "Begin")
    made.commit({"a": "x\n"})
    return made


@pytest.fixture
def server(repo: Repo) -> Repo:
    """A server that has it, as `origin`."""
    server = repo.at(repo.path.parent / "server.git")
    repo.git("clone", "-q", "--bare", str(repo.path), str(server.path))
    repo.git("remote", "add", "origin", str(server.path))
    repo.git("fetch", "-q", "origin")
    repo.git("remote", "set-head", "origin", "main")
    return server


def orphan(repo: Repo, files: dict[str, Content] | None = None, message: str = "Orphan") -> str:
    """Commit files on a branch without a parent."""
    repo.git("checkout", "-q", "--orphan", "other")
    repo.git("rm", "-q", "-r", "-f", ".")
    return repo.commit(MANY if files is None else files, message)


def merged(repo: Repo) -> str:
    """Merge that branch into main."""
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--allow-unrelated-histories", "--no-verify", "-m", "Join", "other")
    return repo.head()


def errors(report: Report) -> list[str]:
    return sorted(
        {each.rule for change in report.changes for each in change.findings if each.level == "error"}
    )


def receive(repo: Repo, server: Repo, *moves: tuple[str, str, str]) -> Report:
    """Judge what pre-receive would of refs, each with its old and its new value."""
    for number, (_, _, new) in enumerate(moves):
        repo.git("push", "-q", "--no-verify", "-f", str(server.path), f"{new}:refs/hidden/n{number}")
    fresh = {**server.env, "GIT_CONFIG_COUNT": "0"}
    for number in range(len(moves)):
        # The objects stay; the refs are not there yet when the hook runs.
        server.git("update-ref", "-d", f"refs/hidden/n{number}")
    lines = "".join(f"{old} {new} {ref}\n" for ref, old, new in moves).encode()
    return judge_receive(open_repository(fresh, str(server.path)), lines)


def push(repo: Repo, server: Repo, ref: str, old: str, new: str) -> Report:
    repository = open_repository(repo.env, str(repo.path))
    return judge_push(repository, "origin", str(server.path), f"{ref} {new} {ref} {old}\n".encode())


def transaction(repo: Repo, ref: str, old: str, new: str) -> Report:
    """Judge what reference-transaction would."""
    repository = open_repository(repo.env, str(repo.path))
    line = f"{old} {new} {ref}\n".encode()
    return judge_transaction(repository, line, lambda: "update-ref", lambda: "update-ref").report


def test_a_merged_orphan_counts_as_what_it_adds_at_every_door(repo: Repo, server: Repo) -> None:
    old = repo.ask("rev-parse", "main")
    root = orphan(repo)
    tip = merged(repo)
    assert repo.check(root).errors == ["max-files"]
    base = "refs/remotes/origin/main"
    for answer in (repo.check(f"{base}..HEAD"), repo.check("--policy-from", base, f"{base}..HEAD")):
        assert (answer.verdict, answer.errors) == ("rejected", ["max-files"])
    assert errors(receive(repo, server, ("refs/heads/main", old, tip))) == ["max-files"]
    assert errors(push(repo, server, "refs/heads/main", old, tip)) == ["max-files"]
    repo.git("update-ref", "refs/heads/main", old)
    repo.git("branch", "-q", "-D", "other")
    # What the branch had before is not judged again.
    shutil.rmtree(repo.path / ".git" / "logs")
    assert errors(transaction(repo, "refs/heads/main", old, tip)) == ["max-files"]


def test_the_orphan_as_first_parent_is_none_the_less_the_later_root(repo: Repo, server: Repo) -> None:
    old = repo.ask("rev-parse", "main")
    root = orphan(repo)
    repo.git("merge", "-q", "--allow-unrelated-histories", "--no-verify", "-m", "Join", "main")
    tip = repo.head()
    assert errors(receive(repo, server, ("refs/heads/main", old, tip))) == ["max-files"]
    assert errors(push(repo, server, "refs/heads/main", old, tip)) == ["max-files"]
    base = "refs/remotes/origin/main"
    assert repo.check("--policy-from", base, f"{base}..{tip}").errors == ["max-files"]
    assert repo.check(root).errors == ["max-files"]


@pytest.mark.parametrize(
    ("default", "branch", "name"),
    [
        ("main", "feature", ""),
        ("main", "", "refs/heads/HEAD"),
        ("main", "", "refs/tags/refs/remotes/origin/HEAD"),
        ("trunk", "main", ""),
        ("trunk", "", "refs/heads/HEAD"),
    ],
)
def test_where_no_ref_names_the_default_branch_no_pushed_ref_makes_an_orphan_the_first(
    repo: Repo, server: Repo, default: str, branch: str, name: str
) -> None:
    """A clone as continuous integration makes it, by init and fetch; an empty branch: HEAD is detached."""
    root = orphan(repo)
    repo.git("merge", "-q", "--allow-unrelated-histories", "--no-verify", "-m", "Join", "main")
    server.git("branch", "-q", "-m", "main", default)
    repo.git("push", "-q", "-f", "--no-verify", str(server.path), f"HEAD:refs/heads/{branch or 'feature'}")
    if name:
        repo.git("push", "-q", "--no-verify", str(server.path), f"{root}:{name}")
    clone = repo.at(repo.path.parent / "ci")
    clone.path.mkdir()
    clone.git("init", "-q", "-b", "none")
    clone.git("remote", "add", "origin", str(server.path))
    everything = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
    clone.git("-c", "remote.origin.followRemoteHEAD=never", "fetch", "-q", "origin", *everything)
    assert clone.try_git("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD").returncode != 0
    where = ("-B", branch) if branch else ("--detach",)
    clone.git("checkout", "-q", *where, f"refs/remotes/origin/{branch or 'feature'}")
    base = f"refs/remotes/origin/{default}"
    for arguments in (
        (f"{base}..HEAD",),
        ("--policy-from", base, f"{base}..HEAD"),
        ("--policy-from", base, root),
    ):
        answer = clone.check(*arguments)
        assert (answer.verdict, answer.errors) == ("rejected", ["max-files"]), arguments
    assert clone.check("--policy-from", f"{base}^{{tree}}", root).errors == ["max-files"]


def test_a_root_of_a_range_is_judged_by_the_policy_of_the_ranges_start(repo: Repo) -> None:
    loose: dict[str, Content] = {"patchgate.toml": "[policy]\n", "runs/record": "x\n"}
    repo.git("branch", "-q", "-m", "main", "trunk")
    root = orphan(repo, {**MANY, **loose})
    repo.git("branch", "-q", "-m", "other", "main")
    assert sorted(repo.check(f"trunk..{root}").errors) == ["deny-prefix", "max-files"]


def test_where_branches_part_and_none_is_the_usual_one_their_policies_must_agree(repo: Repo) -> None:
    repo.git("branch", "-q", "-m", "main", "trunk")
    root = orphan(repo, {**MANY, "runs/record": "x\n"})
    assert sorted(repo.check(root).errors) == ["deny-prefix", "max-files"]
    repo.commit({"patchgate.toml": "[policy]\n"}, "Loosen")
    repo.git("checkout", "-q", "--orphan", "again")
    for arguments in ((root,), ()):
        answer = repo.cli("check", *arguments)
        assert (answer.code, "set-head" in answer.err) == (3, True)
    bare = repo.at(repo.path.parent / "bare.git")
    repo.git("clone", "-q", "--bare", str(repo.path), str(bare.path))
    bare.git("symbolic-ref", "HEAD", "refs/heads/none")
    answer = bare.cli("check", root)
    assert (answer.code, "git symbolic-ref HEAD" in answer.err) == (3, True)
    assert sorted(repo.check("--policy-from", "trunk", root).errors) == ["deny-prefix", "max-files"]


def test_under_a_trusted_ref_a_root_that_it_does_not_reach_is_not_the_first(repo: Repo) -> None:
    """Neither in the transaction nor at a push to where nothing is known of, whatever the main line says."""
    tip = repo.head()
    root = orphan(repo)
    repo.git("update-ref", "refs/remotes/up/stream", tip)
    repo.git("update-ref", "refs/heads/topic", tip)
    repo.git("update-ref", "refs/heads/main", root)
    shutil.rmtree(repo.path / ".git" / "logs")
    repo.git("config", "patchgate.trustRef", "refs/remotes/up/stream")
    assert errors(transaction(repo, "refs/heads/topic", tip, root)) == ["max-files"]
    elsewhere = str(repo.path.parent / "elsewhere")
    line = f"refs/heads/x {root} refs/heads/x {ZERO}\n".encode()
    repository = open_repository(repo.env, str(repo.path))
    assert errors(judge_push(repository, elsewhere, elsewhere, line)) == ["max-files"]


def test_an_orphan_on_a_new_branch_counts(repo: Repo, server: Repo) -> None:
    root = orphan(repo)
    assert errors(receive(repo, server, ("refs/heads/other", ZERO, root))) == ["max-files"]
    assert errors(push(repo, server, "refs/heads/other", ZERO, root)) == ["max-files"]
    repo.git("checkout", "-q", "main")
    repo.git("branch", "-q", "-D", "other")
    assert errors(transaction(repo, "refs/heads/other", ZERO, root)) == ["max-files"]


def test_an_orphan_that_is_staged_counts_and_is_judged_by_the_main_lines_policy(repo: Repo) -> None:
    repo.git("checkout", "-q", "--orphan", "other")
    repo.git("rm", "-q", "-r", "-f", ".")
    repo.stage({**MANY, "patchgate.toml": "[policy]\n", "runs/record": "x\n"})
    answer = repo.check()
    assert sorted(answer.errors) == ["deny-prefix", "max-files"]
    patch = repo.path.parent / "the.patch"
    patch.write_bytes(repo.git("diff", "--cached", "--", "runs"))
    repo.git("rm", "-q", "-r", "-f", ".")
    assert repo.check("--patch", str(patch)).errors == ["deny-prefix"]


def test_an_orphan_that_is_staged_counts_where_only_the_named_policy_has_a_history(repo: Repo) -> None:
    tip = repo.head()
    repo.git("checkout", "-q", "--orphan", "other")
    repo.git("update-ref", "-d", "refs/heads/main")
    assert repo.check().verdict == "accepted"
    assert "max-files" in repo.check("--policy-from", tip).errors
    assert "max-files" not in repo.check("--policy-from", f"{tip}^{{tree}}").errors


def test_a_root_does_not_judge_itself_beside_a_policy(repo: Repo, server: Repo) -> None:
    loose: dict[str, Content] = {"patchgate.toml": "[policy]\n", "runs/record": "x\n"}
    root = orphan(repo, loose)
    assert repo.check(root).errors == ["deny-prefix"]
    assert "deny-prefix" in errors(receive(repo, server, ("refs/heads/other", ZERO, root)))
    assert "deny-prefix" in errors(push(repo, server, "refs/heads/other", ZERO, root))
    repo.git("checkout", "-q", "main")
    repo.git("branch", "-q", "-D", "other")
    assert errors(transaction(repo, "refs/heads/other", ZERO, root)) == ["deny-prefix"]


def test_with_agent_trailers_too(repo: Repo) -> None:
    many: dict[str, Content] = {f"many/f{number}": "x\n" for number in range(60)}
    root = orphan(repo, many, "Orphan\n\nPatchgate-Run: 1\n")
    answer = repo.check(root)
    assert (answer.change["profile"], "max-files" in answer.errors) == ("agent", True)


def test_the_first_commit_has_no_budget(repo: Repo, tmp_path: Path) -> None:
    first = repo.ask("rev-list", "--max-parents=0", "HEAD")
    assert repo.check(first).verdict == "accepted"
    orphan(repo)
    # Where there are several roots it is the one of the main line.
    assert repo.check(first).verdict == "accepted"
    fresh = Repo.create(tmp_path / "fresh")
    fresh.stage({**MANY, "patchgate.toml": LIMIT})
    assert fresh.check().verdict == "accepted"
    begin = fresh.commit()
    fresh.git("update-ref", "-d", "refs/heads/main")
    assert errors(transaction(fresh, "refs/heads/main", ZERO, begin)) == []


def test_the_first_commit_may_be_amended_and_rewritten(repo: Repo, tmp_path: Path) -> None:
    fresh = Repo.create(tmp_path / "fresh")
    old = fresh.commit({**MANY, "patchgate.toml": LIMIT})
    amended = fresh.commit({"more": "x\n"}, "Begin", "--amend")
    fresh.git("update-ref", "refs/heads/main", old)
    assert errors(transaction(fresh, "refs/heads/main", old, amended)) == []
    tip, first = repo.head(), repo.ask("rev-list", "--max-parents=0", "HEAD")
    other = repo.ask("commit-tree", f"{first}^{{tree}}", "-m", "Begin otherwise")
    assert errors(transaction(repo, "refs/heads/main", tip, other)) == []


def empty_server(repo: Repo) -> Repo:
    server = repo.at(repo.path.parent / "empty.git")
    server.path.mkdir()
    server.git("init", "-q", "--bare", "-b", "main")
    return server


@pytest.mark.parametrize(
    "order", [("refs/heads/main", "refs/heads/other"), ("refs/heads/other", "refs/heads/main")]
)
def test_of_two_roots_in_one_push_to_an_empty_server_one_is_the_first(
    repo: Repo, order: Sequence[str]
) -> None:
    root, tip = orphan(repo), repo.ask("rev-parse", "main")
    server = empty_server(repo)
    new = {"refs/heads/main": tip, "refs/heads/other": root}
    report = receive(repo, server, *((ref, ZERO, new[ref]) for ref in order))
    # The orphan has no policy and nobody else's, so the rule is a warning.
    told = [(change.source.commit, each.rule) for change in report.changes for each in change.findings]
    assert (repo.ask("rev-list", "--max-parents=0", "main"), "max-files") not in told
    assert receive(repo, server, ("refs/heads/main", ZERO, tip)).verdict == "accepted"


def test_notes_begin_a_history_of_their_own(repo: Repo, server: Repo) -> None:
    names = [
        repo.git("hash-object", "-w", "--stdin", stdin=f"{n}\n".encode()).decode().strip() for n in range(9)
    ]
    for name in names:
        repo.git("notes", "--ref=some", "add", "-m", "x", name)
    tree = repo.ask("rev-parse", "refs/notes/some^{tree}")
    root = repo.ask("commit-tree", tree, "-m", "Notes")
    repo.git("update-ref", "refs/notes/some", root)
    assert errors(receive(repo, server, ("refs/notes/some", ZERO, root))) == []
    assert errors(push(repo, server, "refs/notes/some", ZERO, root)) == []
    # As a branch they are none.
    assert errors(receive(repo, server, ("refs/heads/other", ZERO, root))) == ["max-files"]
    first = repo.ask("rev-list", "--max-parents=0", "main")
    assert repo.check(first).verdict == "accepted"


@pytest.mark.parametrize("door", ["check", "transaction"])
def test_many_roots_are_compared_with_one_walk_of_the_history(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    walks: list[str] = []
    real = Repository.output

    def seen(self: Repository, *arguments: str, **more: Any) -> bytes:
        walks.extend(each for each in arguments if each == "--max-parents=0")
        return real(self, *arguments, **more)

    asked = {}
    for number in (1, 5):
        roots = [
            repo.ask("commit-tree", "HEAD^{tree}", "-m", f"Root {number} {each}") for each in range(number)
        ]
        parents = [word for root in roots for word in ("-p", root)]
        tip = repo.ask("commit-tree", "HEAD^{tree}", "-p", "HEAD", *parents, "-m", "Merge")
        walks.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Repository, "output", seen)
            if door == "check":
                repo.check(f"HEAD..{tip}", "--policy-from", "HEAD")
            else:
                transaction(repo, "refs/heads/x", ZERO, tip)
        asked[number] = len(walks)
    assert asked[5] == asked[1] > 0
