"""Taking over a remote's commits where history is cut off, objects are missing, or nothing can be judged.

Each test runs the same commands in twin clones, with hooks and without, and compares everything byte for
byte.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.twins import BAD, OFF, POLICY, WORSE, Household, Twins

pytestmark = pytest.mark.turns(3)

GOOD = {"plain/new": "new\n"}
TAKE_OVER = [
    "merge -q --ff-only origin/main",
    "merge -q --no-edit origin/main",
    "merge -q --no-ff --no-edit origin/main",
    "rebase -q origin/main",
    "rebase -q --apply origin/main",
    "checkout -q -B main origin/main",
    "switch -q -C main origin/main",
    "reset -q --keep origin/main",
    "reset -q --soft origin/main",
    "reset -q origin/main",
    "update-ref refs/heads/main origin/main",
    "pull -q --ff",
    "pull -q --rebase --autostash",
]


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    """Twins that have nothing to tell yet."""
    return Twins(tmp_path)


def clone(twins: Twins, *options: str) -> None:
    """Clone the remote in both, and install the hooks in the gated one."""
    for each in (twins.gated, twins.plain):
        each.repo.git("--git-dir=../remote.git", "config", "uploadpack.allowFilter", "true")
        each.repo.git("--git-dir=../remote.git", "config", "uploadpack.allowAnySHA1InWant", "true")
        url = (each.folder / "remote.git").as_uri()
        each.repo.git("clone", "-q", *options, url, "../clone")
        # The messages of merges hold the URL, and twins lie in different folders.
        each.repo.git("-C", "../clone", "config", "remote.origin.url", "../remote.git")
    twins.gated.repo.at(twins.gated.folder / "clone").git("patchgate", "install")


def bad_upstream(twins: Twins) -> None:
    """Let the remote's main get commits that break the policy, one of them only for a while."""
    for each in (twins.gated, twins.plain):
        for files in (BAD, WORSE, {"plain/bad": "fine\n"}, {"plain/more": "more\n"}):
            each.upstream(files)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("command", TAKE_OVER)
@pytest.mark.parametrize("ahead", [False, True])
def test_taking_over_what_the_remote_has(twins: Twins, command: str, ahead: bool) -> None:
    bad_upstream(twins)
    if ahead:
        if "--ff-only" in command:
            pytest.skip("that cannot be fast-forwarded")
        twins.both(lambda each: each.plant(GOOD))
        command = command.replace("--ff", "--no-rebase --no-edit") if "pull" in command else command
    twins.git("fetch", "-q")
    twins.git(*command.split())


@pytest.mark.sweep(4)
@pytest.mark.parametrize("option", ["--depth=1", "--depth=2", "--filter=blob:none", "--filter=tree:0"])
@pytest.mark.parametrize("form", ["--ff-only", "--rebase", "--no-rebase"])
def test_a_pull_in_a_clone_that_lacks_something(twins: Twins, option: str, form: str) -> None:
    clone(twins, option)
    bad_upstream(twins)
    if form != "--ff-only":
        for each in (twins.gated, twins.plain):
            each.repo.at(each.folder / "clone").write("plain/new", "new\n")
        twins.git("add", "-A", where="clone")
        twins.git("commit", "-q", "-m", "Add a file", where="clone")
    twins.git("pull", "-q", "--no-edit", form, where="clone")


@pytest.mark.sweep(2)
@pytest.mark.parametrize("fetch", ["--deepen=1", "--unshallow", "--depth=2", "--refetch"])
def test_a_fetch_in_a_shallow_clone(twins: Twins, fetch: str) -> None:
    bad_upstream(twins)
    clone(twins, "--depth=2")
    twins.git("fetch", "-q", fetch, where="clone")
    twins.git("switch", "-q", "-c", "x", "origin/main~1", where="clone")
    twins.git("switch", "-q", "main", where="clone")


def test_a_pull_in_a_linked_worktree(twins: Twins) -> None:
    bad_upstream(twins)
    for each in (twins.gated, twins.plain):
        each.repo.git("switch", "-q", "-c", "elsewhere")
        each.repo.git("worktree", "add", "-q", "../linked", "main")
    twins.git("pull", "-q", "--ff-only", where="linked")
    twins.git("stash", where="linked")
    twins.same()


def test_a_pull_of_a_policy_that_cannot_be_read_and_of_its_mending(twins: Twins) -> None:
    twins.both(lambda each: each.upstream({"patchgate.toml": "[policy\n"}))
    twins.both(lambda each: each.upstream(GOOD))
    twins.git("pull", "-q", "--ff-only")
    twins.both(lambda each: each.upstream(BAD))
    twins.git("pull", "-q", "--rebase")
    twins.both(lambda each: each.upstream({"patchgate.toml": POLICY}))
    twins.git("pull", "-q", "--no-rebase")


def break_policy(each: Household) -> None:
    """Have a policy here that cannot be read."""
    each.plant({"patchgate.toml": "[policy\n"})


def miss_the_trusted_ref(each: Household) -> None:
    """Trust a ref that is not there."""
    each.repo.git("config", "patchgate.trustRef", "refs/remotes/origin/gone")


def break_the_records(each: Household) -> None:
    """Have a ledger, receipts and settled tips that nobody can read."""
    ours = each.repo.path / ".git/patchgate"
    ours.mkdir(exist_ok=True)
    for name in ("events.jsonl", "receipts", "settled"):
        (ours / name).write_bytes(b"\xff\0not this\n")


BROKEN = [break_policy, miss_the_trusted_ref, break_the_records]


@pytest.mark.sweep(4)
@pytest.mark.parametrize("broken", BROKEN)
def test_ways_back_stay_open_where_nothing_can_be_judged(twins: Twins, broken: object) -> None:
    assert callable(broken)
    bad_upstream(twins)
    twins.both(lambda each: each.plant_branch("side", {"plain/a": "theirs\n"}))
    twins.both(lambda each: each.plant({"plain/a": "ours\n"}))
    old = twins.gated.repo.ask("rev-parse", "HEAD~1")
    twins.both(broken)
    here = twins.gated.repo.head()
    for operation in ("merge", "rebase", "cherry-pick"):
        for each in (twins.gated, twins.plain):
            assert each.repo.try_git(*OFF, operation, "side").returncode == 1
        twins.git(operation, "--abort")
    twins.git("reset", "-q", "--hard", old)
    twins.git("reset", "-q", "--hard", here)
    twins.git("branch", "-f", "side", "side")
    twins.git("branch", "-q", "copy", "side")
    twins.git("branch", "-q", "-D", "copy")
    for each in (twins.gated, twins.plain):
        each.repo.write("plain/c", "edited\n")
    twins.git("stash")
    twins.git("stash", "pop")
    twins.git("checkout", "-q", "--", "plain/c")
    twins.git("fetch", "-q")
    twins.git("switch", "-q", "-c", "theirs", "origin/main")
    twins.git("switch", "-q", "main")
    twins.git("reset", "-q", "--hard", "origin/main")


@pytest.mark.sweep(4)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_pull_where_nothing_can_be_judged(twins: Twins, broken: object) -> None:
    assert callable(broken)
    bad_upstream(twins)
    if broken is not break_policy:
        # Else it would be this repository's own commit that nobody can accept.
        twins.both(broken)
        twins.git("pull", "-q", "--ff-only")
        twins.both(lambda each: each.upstream(GOOD))
        twins.git("pull", "-q", "--rebase")
    else:
        twins.both(broken)
        twins.git("fetch", "-q")
        twins.git("reset", "-q", "--hard", "origin/main")
