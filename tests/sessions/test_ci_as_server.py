"""`check --ci` says of the push of a protected ref what a server says of it."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from tests.approvals.owners_world import GOVERNED, Team
from tests.approvals.test_owner_attacks import commit_of
from tests.components.test_push_tips import STRICT, ZERO, Pushed, circle
from tests.sessions.test_ci import Host, without_a_push
from tests.signing import REF, SIGNERS
from tests.world import Answer, Repo

pytestmark = pytest.mark.turns(3)


def built(pushed: Pushed, commit: str) -> Host:
    """Use the developer's repository as the clone of an engine, with a commit checked out."""
    pushed.repo.git("checkout", "-q", "-f", "--detach", commit)
    return Host(pushed.repo, pushed.server, pushed.repo, commit)


def approve_as_printed(team: Team, answer: Answer) -> None:
    """Sign what a refusal asks for, by the command that it prints."""
    words = shlex.split(answer.report["approve"])
    assert words[-1] == "--sign"
    assert team.approve("alice", *words[3 : words.index("--reason")]).code == 0


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


@pytest.mark.parametrize("engine", ["Azure", "Buildkite"])
def test_what_was_approved_for_a_listed_branch_counts_where_no_push_is_named(
    tmp_path: Path, engine: str
) -> None:
    denied = GOVERNED.replace("[policy]\n", '[policy]\ndeny_prefixes = ["runs"]\n')
    team = Team.make(tmp_path, denied + RELEASES)
    dev, ref = team.dev, "refs/heads/release/1"
    excepted = dev.commit({"runs/x": "1\n"})
    assert team.approve("alice", excepted, "--for", ref).code == 0
    after = dev.commit({"a": "2\n"})
    assert at_both_doors(team.server, dev, ref, team.head(), after) == ([], [])
    said = without_a_push(engine, "release/1", after)
    host = Host(dev, team.server, dev, after)
    answer = host.check(said)
    assert (answer.code, answer.errors) == (0, []), answer.err
    dev.git("update-ref", "-d", REF)
    assert host.check(said).errors == ["deny-prefix"]


def test_a_change_of_the_rules_that_has_landed_can_be_approved_afterwards(tmp_path: Path) -> None:
    """A direct push that the host let pass: the clone of its approver has it by then."""
    team = Team.make(tmp_path, GOVERNED)
    dev, ref, had = team.dev, "refs/heads/main", team.head()
    after = dev.policy(GOVERNED + "# v\n")
    dev.git("update-ref", "refs/remotes/origin/main", after)
    host = Host(dev, team.server, dev, after)
    answer = host.check(host.pushed(ref, had, after))
    assert answer.errors == ["owner-approval-missing"]
    assert f"--for {ref} --policy-from {had[:12]}" in answer.findings[0]["hint"]
    assert team.approve("alice", after, "--for", ref, "--policy-from", had).code == 0
    assert host.check(host.pushed(ref, had, after)).code == 0


def test_what_ci_prints_for_a_branch_without_a_policy_approves_what_has_landed_there(tmp_path: Path) -> None:
    """The policy of the default branch judges it."""
    team = Team.make(tmp_path, GOVERNED + RELEASES)
    dev, ref = team.dev, "refs/heads/release/1"
    had = commit_of(dev, None, {"a": "1\n"})
    after = commit_of(dev, had, {"patchgate.toml": GOVERNED})
    dev.git("update-ref", "refs/remotes/origin/release/1", after)
    dev.git("checkout", "-q", "-f", "--detach", after)
    host = Host(dev, team.server, dev, after)
    answer = host.check(host.pushed(ref, had, after))
    assert answer.errors == ["owner-approval-missing"]
    approve_as_printed(team, answer)
    assert host.check(host.pushed(ref, had, after)).code == 0


@pytest.mark.parametrize("has_landed", [False, True])
def test_what_ci_prints_for_a_solved_conflict_on_a_branch_without_a_policy_approves_it(
    tmp_path: Path, has_landed: bool
) -> None:
    denied = GOVERNED.replace("[policy]\n", '[policy]\ndeny_prefixes = ["runs"]\n')
    team = Team.make(tmp_path, denied + RELEASES)
    dev, ref = team.dev, "refs/heads/release/1"
    start = commit_of(dev, None, {"runs/x": "1\n"})
    had, topic = (commit_of(dev, start, {"runs/x": f"{side}\n"}) for side in "23")
    merge = commit_of(dev, had, {"runs/x": "23\n"}, had, topic)
    dev.git("update-ref", "refs/remotes/origin/release/1", merge if has_landed else had)
    dev.git("checkout", "-q", "-f", "--detach", merge)
    host = Host(dev, team.server, dev, had)
    said = host.pushed(ref, had, merge)
    if not has_landed:
        said = {"JENKINS_URL": "http://ci.invalid", "CHANGE_ID": "1", "CHANGE_TARGET": "release/1"}
    for _ in range(2):
        answer = host.check(said)
        assert set(answer.errors) == {"deny-prefix"}
        approve_as_printed(team, answer)
    assert host.check(said).code == 0


def test_no_file_of_the_checkout_names_signers(tmp_path: Path) -> None:
    """A pull request would change it first, and then the rules with the key that it has added."""
    team = Team.make(tmp_path)
    dev, keys = team.dev, team.keys["alice"].allowed("alice@example.com")
    had = commit_of(dev, team.head(), {"ci/keys": keys})
    after = commit_of(dev, had, {"a": "2\n"})
    dev.git("update-ref", "refs/remotes/origin/main", after)
    dev.git("checkout", "-q", "-f", "--detach", after)
    host = Host(dev, team.server, dev, had)
    said = host.pushed("refs/heads/main", had, after)
    assert host.check(said, "--signer", "ci/keys").code == 2
    assert host.check(said, "--signer", f"# ours\n{keys}").code == 0


def test_where_the_file_system_ignores_case_no_branch_takes_the_place_of_another(tmp_path: Path) -> None:
    """There one file has the refs `main` and `Main`. A link makes a repository look like one there."""
    team = Team.make(tmp_path, GOVERNED + RELEASES)
    dev, server = team.dev, team.server
    (server.path / "head").hardlink_to(server.path / "HEAD")
    after = commit_of(dev, team.head(), {"a": "2\n"})
    names = (("Main", 3), ("topic/1", 0), ("Topic/2", 3), ("topic/2", 0), ("ma\u200cin", 3), ("main", 0))
    for ref, code in names:
        answer = team.push(f"{after}:refs/heads/{ref}")
        assert answer.code == code, answer.err
    dev.git("checkout", "-q", "-f", "--detach", after)
    host = Host(dev, server, dev, after)
    dev.git("update-ref", "refs/remotes/origin/main", f"{after}~")
    jenkins = {"JENKINS_URL": "http://ci.invalid", "CHANGE_ID": "1", "CHANGE_TARGET": "main"}
    none: dict[str, str] = {}
    events = (jenkins, none, host.pushed("refs/heads/main", dev.ask("rev-parse", f"{after}~"), after))
    assert [host.check(said).code for said in events] == [0, 0, 0]
    Path(dev.git_dir, "head").hardlink_to(Path(dev.git_dir, "HEAD"))
    assert [host.check(said).code for said in events] == [3, 3, 3]


def test_a_signer_whom_a_first_push_brings_approves_nothing_in_it(tmp_path: Path) -> None:
    team = Team.make(tmp_path, "[policy]\n", signers=())
    dev = team.dev
    dev.git("init", "-q", "-b", "main", "--bare", str(tmp_path / "new.git"))
    server = dev.at(tmp_path / "new.git")
    alice = f"--signer={team.keys['alice'].public} alice@example.com"
    assert server.cli("install", "--server", alice).code == 0
    dev.git("remote", "remove", "origin")
    dev.git("remote", "add", "origin", str(server.path))
    dev.git("checkout", "-q", "--orphan", "begin")
    dev.git("rm", "-q", "-r", "--cached", ".")
    dev.git("branch", "-D", "main")
    owned = '[[owners]]\npaths = ["infra/**"]\nsigners = ["bob@example.com"]\n'
    signers = "".join(team.keys[name].allowed(f"{name}@example.com") for name in ("alice", "bob"))
    first = dev.commit({"patchgate.toml": GOVERNED + owned, SIGNERS: signers})
    second = dev.commit({"infra/main.tf": "2\n"})
    for who, commit in (("alice", first), ("bob", second)):
        assert team.approve(who, commit, "--for", "refs/heads/main").code == 0
    both = at_both_doors(server, dev, "refs/heads/main", ZERO, second, alice)
    assert both == (["owner-approval-missing"], ["owner-approval-missing"])


def test_what_a_stale_head_would_carry_is_refused_once(tmp_path: Path) -> None:
    """The merge that a host would make is not in this repository: nothing of it is asked for there."""
    denied = GOVERNED.replace("[policy]\n", '[policy]\ndeny_prefixes = ["runs"]\n')
    team = Team.make(tmp_path, denied)
    dev, text = team.dev, "".join(f"line {number}\n" for number in range(20))
    start = dev.commit({"ci/build": text})
    head = commit_of(dev, start, {"ci/build": text.replace("line 7", "other 7")})
    moved = commit_of(dev, start, {"ci/build": None, "runs/build": text.replace("line 1\n", "more 1\n")})
    dev.git("update-ref", "refs/remotes/origin/main", moved)
    asked = "--policy-from", "refs/remotes/origin/main", f"refs/remotes/origin/main..{head}"
    answer = dev.check(*asked, CI="true")
    kinds = [each["source"]["kind"] for each in answer.changes]
    assert (answer.code, answer.errors, kinds) == (1, ["deny-prefix"], ["commit", "range"])
