"""What CI does to check something out is never refused, whatever the commits hold.

Each test runs the same commands in twin repositories, with hooks and without, and compares everything byte
for byte. (Under `CI=true` nothing is installed at all; here the hooks are there because somebody put them.)
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sessions.twins import BAD, POLICY, WORSE, Twins
from tests.world import Repo


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    """Twins that have nothing to tell yet."""
    return Twins(tmp_path)


def ci(twins: Twins) -> list[str]:
    """Make an empty repository in both, with the hooks in the gated one; give the bad commits."""
    twins.both(lambda each: each.upstream(BAD))
    twins.both(lambda each: each.upstream(WORSE))
    bad = twins.gated.other.ask("rev-list", "HEAD~2..HEAD").split()
    for each in (twins.gated, twins.plain):
        each.repo.git("init", "-q", "-b", "main", "../ci")
    fresh = twins.gated.repo.at(twins.gated.folder / "ci")
    fresh.git("patchgate", "install")
    assert (fresh.path / ".git/hooks/reference-transaction").exists()
    return bad


def test_a_checkout_of_one_commit(twins: Twins) -> None:
    newest = ci(twins)[0]
    twins.git("fetch", "-q", "--depth=1", "../remote.git", newest, where="ci")
    twins.git("checkout", "-q", "--detach", newest, where="ci")
    twins.git("checkout", "-q", "-b", "build", where="ci")


def test_a_checkout_as_an_action_does_it(twins: Twins) -> None:
    newest = ci(twins)[0]
    twins.git("remote", "add", "origin", "../remote.git", where="ci")
    fetch = ("-c", "protocol.version=2", "fetch", "-q", "--no-tags", "--prune", "--no-recurse-submodules")
    twins.git(*fetch, "--depth=1", "origin", f"+{newest}:refs/remotes/origin/main", where="ci")
    twins.git("checkout", "-q", "--force", "-B", "main", "refs/remotes/origin/main", where="ci")
    # The next build in the same folder.
    twins.both(lambda each: each.upstream({"secrets/other": "x\n"}))
    newer = twins.gated.other.head()
    twins.git("checkout", "-q", "--detach", where="ci")
    twins.git("branch", "-q", "--delete", "--force", "main", where="ci")
    twins.git("clean", "-ffdx", where="ci")
    twins.git("reset", "-q", "--hard", "HEAD", where="ci")
    twins.git(*fetch, "--depth=1", "origin", f"+{newer}:refs/remotes/origin/main", where="ci")
    twins.git("checkout", "-q", "--force", "-B", "main", "refs/remotes/origin/main", where="ci")


def test_a_checkout_of_a_pull_request(twins: Twins) -> None:
    ci(twins)
    twins.both(lambda each: each.upstream(WORSE | {"plain/more": "x\n"}, "feature"))
    twins.git("remote", "add", "origin", "../remote.git", where="ci")
    fetched = "+refs/heads/feature:refs/remotes/pull/1/merge"
    twins.git("fetch", "-q", "--no-tags", "--depth=1", "origin", fetched, where="ci")
    twins.git("checkout", "-q", "--force", "refs/remotes/pull/1/merge", where="ci")


def test_a_checkout_as_a_pipeline_does_it(twins: Twins) -> None:
    newest = ci(twins)[0]
    twins.git("remote", "add", "origin", "../remote.git", where="ci")
    fetched = f"+{newest}:refs/pipelines/1"
    twins.git(
        "fetch", "-q", "--depth=20", "origin", fetched, "+refs/heads/*:refs/remotes/origin/*", where="ci"
    )
    twins.git("checkout", "-q", "-f", newest, where="ci")
    twins.git("submodule", "update", "--init", "--recursive", where="ci")


def test_under_ci_nothing_is_installed(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path)
    repo.policy(POLICY)
    before = sorted(path.name for path in (repo.path / ".git/hooks").iterdir())
    answer = repo.run("install", CI="true")
    assert answer.code == 0
    assert len((answer.out + answer.err).splitlines()) == 1
    assert sorted(path.name for path in (repo.path / ".git/hooks").iterdir()) == before
