"""`check --ci` says of the push of a protected ref what a server says of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.approvals.owners_world import GOVERNED, Team
from tests.components.test_push_tips import STRICT, ZERO, Pushed, circle
from tests.sessions.test_ci import Host
from tests.signing import REF, SIGNERS
from tests.world import Repo

pytestmark = pytest.mark.turns(3)


def built(pushed: Pushed, commit: str) -> Host:
    """Use the developer's repository as the clone of an engine, with a commit checked out."""
    pushed.repo.git("checkout", "-q", "-f", "--detach", commit)
    return Host(pushed.repo, pushed.server, pushed.repo, commit)


def test_a_circle_is_told_of_a_first_push_too(tmp_path: Path) -> None:
    pushed = circle(tmp_path)
    head = pushed.repo.head()
    pushed.repo.git("update-ref", "refs/remotes/origin/main", head)
    host = built(pushed, head)
    for before in (pushed.old, ZERO):
        answer = host.check(host.pushed("refs/heads/main", before, head))
        assert (answer.code, set(answer.errors)) == (1, {"dependency-cycle"})


def test_a_tag_of_an_old_commit_is_not_asked_for_fresh_components(tmp_path: Path) -> None:
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/tags/v*"]\n'
    pushed = Pushed(tmp_path, "a", more=STRICT + listed)
    repo = pushed.repo
    old = repo.on(5, {"README": "text\n"})
    today = int((time.time() - repo.at_day(0)) // 86_400)
    tests = repo.ask("show", "HEAD:tests/a/test_a.py") + "\n\n\nx = 1\n"
    repo.on(today, {"tests/a/test_a.py": tests})
    repo.git("update-ref", "refs/remotes/origin/main", repo.on(today, repo.captured("a")))
    host = built(pushed, old)
    assert "baseline-stale" in host.check(host.pushed("refs/heads/main", pushed.old, old)).errors
    for name in ("v1", "other"):
        assert host.check(host.pushed(f"refs/tags/{name}", ZERO, old)).code == 0


RELEASES = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*", "refs/tags/v*"]\n'


def at_both_doors(
    server: Repo, dev: Repo, ref: str, old: str, new: str, *arguments: str, is_stricter: bool = False
) -> tuple[list[str], list[str]]:
    """Push to a server that has a ref at its old value, and check it in CI; give the refusals of both."""
    (server.path / "objects" / "info" / "alternates").write_text(f"{dev.git_dir}/objects\n")
    if dev.try_git("rev-parse", "-q", "--verify", REF).returncode == 0:
        server.git("update-ref", REF, dev.ask("rev-parse", REF))
    tracking = ref.replace("refs/heads/", "refs/remotes/origin/")
    if old == ZERO:
        server.try_git("update-ref", "-d", ref)
    else:
        server.git("update-ref", ref, old)
    said = server.answer_hook("pre-receive", f"{old} {new} {ref}\n".encode())
    lines = [line.split(": error ")[1] for line in (said.out + said.err).splitlines() if ": error " in line]
    dev.git("update-ref", tracking, new)
    dev.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    dev.git("checkout", "-q", "-f", "--detach", new)
    host = Host(dev, server, dev, new)
    answer = host.check(host.pushed(ref, old, new) | {"GITHUB_REF_PROTECTED": "true"}, *arguments)
    assert is_stricter or answer.code == said.code
    return sorted(line.split(" ")[0] for line in lines), sorted(answer.errors)


def test_a_release_that_gets_the_default_branch_is_asked_for_what_that_has_too(tmp_path: Path) -> None:
    """What the default branch has may have come with the same push, and stays there though it is refused."""
    policy = '[policy]\ndeny_prefixes = ["runs", "docs"]\n' + RELEASES
    team = Team.make(tmp_path, policy, signers=())
    dev, start = team.dev, team.head()
    dev.policy(policy.replace(', "docs"', ""))
    main = dev.commit({"docs/x": "1\n"})
    refused = at_both_doors(team.server, dev, "refs/heads/main", start, main)
    assert refused == (["deny-prefix"], ["deny-prefix"])
    team.server.git("update-ref", "refs/heads/main", main)
    at_release = team.server, dev, "refs/heads/release/1", start, main
    assert at_both_doors(*at_release, is_stricter=True) == ([], ["deny-prefix"])


@pytest.mark.parametrize(
    ("ref", "is_new", "rules"),
    [
        ("refs/tags/v1", False, ["deny-prefix"]),
        ("refs/tags/v1", True, []),
        ("refs/heads/release/1", False, ["deny-prefix"]),
        ("refs/heads/release/1", True, []),
    ],
)
def test_an_exception_for_the_default_branch_counts_for_no_other_ref(
    ref: str, is_new: bool, rules: list[str], tmp_path: Path
) -> None:
    denied = GOVERNED.replace("[policy]\n", '[policy]\ndeny_prefixes = ["runs"]\n')
    team = Team.make(tmp_path, denied + RELEASES + '[rules]\nref-forced = "warning"\n')
    dev, start = team.dev, team.head()
    excepted = dev.commit({"runs/x": "1\n"})
    assert team.approve("alice", excepted, "--for", "refs/heads/main").code == 0
    assert at_both_doors(team.server, dev, "refs/heads/main", start, excepted) == ([], [])
    team.server.git("update-ref", "refs/heads/main", excepted)
    old = ZERO if is_new else start
    assert at_both_doors(team.server, dev, ref, old, excepted) == (rules, rules)


def test_a_signer_whom_a_first_push_brings_approves_nothing_in_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n", signers=())
    dev = team.dev
    dev.git("init", "-q", "-b", "main", "--bare", str(tmp_path / "new.git"))
    server = dev.at(tmp_path / "new.git")
    alice = f"--signer={team.keys['alice'].public} alice@example.com"
    assert server.cli("install", "--server", alice).code == 0
    # An approver sees a branch that has no rules yet.
    plain = dev.ask("commit-tree", dev.ask("rev-parse", "HEAD:infra"), "-m", "Begin")
    dev.git("checkout", "-q", "--orphan", "begin")
    dev.git("rm", "-q", "-r", "--cached", ".")
    dev.git("update-ref", "refs/heads/main", plain)
    owned = '[[owners]]\npaths = ["infra/**"]\nsigners = ["bob@example.com"]\n'
    signers = "".join(team.keys[name].allowed(f"{name}@example.com") for name in ("alice", "bob"))
    first = dev.commit({"patchgate.toml": GOVERNED + owned, SIGNERS: signers})
    second = dev.commit({"infra/main.tf": "2\n"})
    dev.git("remote", "remove", "origin")
    for who, commit in (("alice", first), ("bob", second)):
        assert team.approve(who, commit, "--for", "refs/heads/main").code == 0
    both = at_both_doors(server, dev, "refs/heads/main", ZERO, second, alice)
    assert both == (["owner-approval-missing"], ["owner-approval-missing"])
