"""`check --ci` on Jenkins, which names no push, but the commit of the last build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.approvals.owners_world import GOVERNED, Team
from tests.approvals.test_owner_attacks import commit_of
from tests.component_world import CONTRACT, TESTS, TEXT_OF_TESTS, contract
from tests.sessions.test_ci import BAD, GOOD, LOOSE, POLICY, Host, host, joined, laid_out
from tests.sessions.test_ci_as_server import at_both_doors
from tests.sessions.test_findings_unlearned import LATER, OTHER, Shared

__all__ = ["host", "laid_out"]

pytestmark = pytest.mark.turns(3)

ON_JENKINS = {"JENKINS_URL": "http://ci.invalid", "BRANCH_NAME": "main", "BRANCH_IS_PRIMARY": "true"}


@pytest.mark.parametrize("ref", ["main", "upstream/main", "detached", ""])
def test_where_jenkins_names_no_branch_the_newest_change_of_the_default_one_is_judged(
    host: Host, ref: str
) -> None:
    before, after = host.main, host.land(BAD)
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": before, "GIT_BRANCH": ref} if ref else {}
    for known in ({"JENKINS_URL": "http://ci.invalid"}, {}):
        assert host.check(known | said).errors == ["deny-prefix"]


@pytest.mark.parametrize(
    ("protected", "is_listed"), [("main", True), ("release/1", True), ("release/1", False)]
)
def test_a_plain_job_that_builds_one_of_several_branches_is_asked_for_the_protected_ones(
    host: Host, protected: str, is_listed: bool
) -> None:
    """A commit that several branches have is built once, and Jenkins names one of them."""
    host.main = host.land({"patchgate.toml": POLICY + '[push]\nprotected_refs = ["refs/heads/release/*"]\n'})
    if protected == "main":
        after = host.land(BAD)
    else:
        after = host.push(protected, BAD)
        host.dev.git("push", "-q", "origin", f"{after}:refs/heads/other")
        listed = '[push]\nprotected_refs = ["refs/heads/release/*"]\n'
        host.main = host.land({"patchgate.toml": listed if is_listed else LOOSE})
    host.clone(after)
    host.ci.git("update-ref", "refs/remotes/origin/other", after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = {"JENKINS_URL": "http://ci.invalid", "GIT_COMMIT": after, "GIT_BRANCH": "origin/other"}
    answer = host.check(said)
    assert (answer.code, set(answer.errors)) == (1, {"deny-prefix"})


def test_jenkins_is_answered_by_the_rules_of_the_build_before(host: Host) -> None:
    green = host.main
    tight = host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "docs"')})
    after = host.land({"docs/x": "1\n"})
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_SUCCESSFUL_COMMIT": green}
    # Where the build of the new rules still runs, or none came before, they count too.
    for previous in (tight, after, green, ""):
        answer = host.check(said | {"GIT_PREVIOUS_COMMIT": previous})
        assert (answer.code, answer.errors) == (1, ["deny-prefix"])
    host.land({"patchgate.toml": POLICY})
    fine = host.land(GOOD)
    host.ci.git("fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*")
    host.ci.git("checkout", "-q", "--detach", fine)
    said |= {"GIT_COMMIT": fine, "GIT_PREVIOUS_SUCCESSFUL_COMMIT": after}
    for previous in (after, fine):
        assert host.check(said | {"GIT_PREVIOUS_COMMIT": previous}).code == 0


def test_a_merge_that_a_plugin_makes_before_the_build_is_no_push(host: Host) -> None:
    """It has the name of the branch that was merged, as a fast-forward to another open branch had before."""
    loose = host.push("first", {"patchgate.toml": LOOSE})
    bad = host.push("second", BAD, onto=loose)
    main = host.land(GOOD)
    built = joined(host, main, bad)
    host.clone(built)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = {"JENKINS_URL": "http://ci.invalid", "GIT_COMMIT": built, "GIT_BRANCH": "origin/main"}
    answer = host.check(said | {"GIT_PREVIOUS_COMMIT": loose})
    assert (answer.code, "deny-prefix" in answer.errors) == (1, True)


def test_what_was_refused_is_refused_when_jenkins_builds_it_again(host: Host) -> None:
    green = host.main
    tight = host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "docs"')})
    host.land({"docs/x": "1\n"})
    after = host.land({"pyproject.toml": "[project]\n"})
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_SUCCESSFUL_COMMIT": green}
    for previous in (tight, after):
        assert host.check(said | {"GIT_PREVIOUS_COMMIT": previous}).errors == ["deny-prefix"]


def test_jenkins_finds_newer_rules_on_any_side_of_a_merge(host: Host) -> None:
    green = host.main
    bad = host.push("feature", {"docs/x": "1\n"}, onto=green)
    host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "docs"')})
    host.dev.git("checkout", "-q", "--detach", bad)
    host.dev.git("merge", "-q", "--no-ff", "-m", "Merge", "main")
    merge = host.dev.head()
    host.dev.git("push", "-q", "origin", f"{merge}:refs/heads/main")
    host.clone(merge)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    answer = host.check(ON_JENKINS | {"GIT_COMMIT": merge, "GIT_PREVIOUS_COMMIT": green})
    assert set(answer.errors) == {"deny-prefix"}


def test_jenkins_builds_an_older_commit_again_and_takes_no_forced_push_for_that(host: Host) -> None:
    older = host.land(GOOD)
    before = host.land({"b.txt": "b\n"})
    forced = host.push("feature", {"c.txt": "c\n"}, onto=older)
    host.dev.git("checkout", "-q", "--detach", forced)
    host.dev.git("merge", "-q", "--no-ff", "-m", "Merge", before)
    now = host.dev.head()
    host.dev.git("push", "-q", "-f", "origin", f"{now}:refs/heads/main")
    for built, errors in ((older, []), (forced, ["ref-forced"])):
        host.clone(built)
        host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        assert host.check(ON_JENKINS | {"GIT_COMMIT": built, "GIT_PREVIOUS_COMMIT": before}).errors == errors


def test_on_jenkins_a_merge_is_not_judged_by_rules_that_came_after_it(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchgate.check.ci_moves._MOST_RULES", 1)
    before = host.main
    host.main = built = host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "x"')})
    for number in range(3):
        # They began before the last change of the rules, and each merge keeps those of its branch.
        side = host.push(f"feature-{number}", {f"docs/{number}": "1\n"}, onto=before)
        host.main = joined(host, host.main, side)
    host.dev.git("checkout", "-q", "-B", "main", host.main)
    host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "docs"')})
    after = host.land(GOOD)
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    answer = host.check(ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": built})
    assert (answer.code, answer.errors) == (0, [])


@pytest.mark.parametrize("is_first", [True, False])
def test_jenkins_sees_a_merge_that_brings_back_what_came_since_the_build(host: Host, is_first: bool) -> None:
    green = host.land({"patchgate.toml": LOOSE, "runs/old": "1\n"})
    green = host.land({"patchgate.toml": POLICY})
    side = host.push("feature", GOOD, onto=green)
    host.dev.git("rm", "-q", "runs/old")
    gone = host.land({})
    parents = (gone, side) if is_first else (side, gone)
    tree = host.dev.ask("rev-parse", f"{side}^{{tree}}")
    merge = host.dev.ask("commit-tree", tree, *(word for oid in parents for word in ("-p", oid)), "-m", "x")
    host.dev.git("push", "-q", "origin", f"{merge}:refs/heads/main")
    host.clone(merge)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    for previous in (gone, green):
        answer = host.check(ON_JENKINS | {"GIT_COMMIT": merge, "GIT_PREVIOUS_COMMIT": previous})
        assert "deny-prefix" in answer.errors


def test_too_many_changes_of_the_rules_between_two_builds_are_undecided(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchgate.check.ci_moves._MOST_RULES", 1)
    green = host.main
    for number, code in enumerate((0, 0, 3)):
        after = host.land({"patchgate.toml": POLICY.replace('"runs"', f'"runs", "x{number}"')})
        host.clone(after)
        host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        assert host.check(ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": green}).code == code


def test_what_takes_too_long_to_check_for_each_place_of_a_branch_is_undecided(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    green = host.main
    host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "docs"')})
    after = host.land(GOOD)
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": green}
    assert host.check(said).code == 0
    monkeypatch.setattr("patchgate.cli.ci._MORE_SECONDS", -3600)
    assert host.check(said).code == 3


@pytest.mark.parametrize(
    "moved",
    [
        {"patchgate.toml": GOVERNED + "# t\n"},
        {".pre-commit-config.yaml": "repos:\n- repo: https://x/patchgate\n"},
        {".patchgate/x": "1\n"},
        {".patchgate/baselines": "1\n"},
        {},
    ],
    ids=["policy", "hooks", "folder", "baselines", "mode"],
)
def test_an_approval_from_before_the_rules_moved_counts_on_jenkins_no_more(
    tmp_path: Path, moved: dict[str, str]
) -> None:
    """Also where the last build was before that, and what moved is no policy and no signer."""
    team = Team.make(tmp_path, GOVERNED)
    dev, ref, built = team.dev, "refs/heads/main", team.head()
    if not moved:
        (dev.path / "patchgate.toml").chmod(0o755)
    there = dev.commit(moved)
    team.approve("alice", there, "--for", ref)
    after = dev.policy(GOVERNED + "# v\n")
    where = ("--policy-from", "refs/remotes/origin/main")
    assert team.approve("alice", after, "--for", ref, *where).code == 0
    assert at_both_doors(team.server, dev, ref, there, after)[0] == ["owner-approval-missing"]
    for before in (there, built):
        said = ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": before}
        answer = Host(dev, team.server, dev, after).check(said)
        assert answer.errors == ["owner-approval-missing"]


def test_several_approved_changes_of_the_rules_may_have_landed_between_two_builds(tmp_path: Path) -> None:
    """Each was approved on what the branch had by then."""
    team = Team.make(tmp_path, GOVERNED)
    dev, ref, built = team.dev, "refs/heads/main", team.head()
    for number in range(3):
        there = dev.head()
        after = dev.policy(GOVERNED + f"# {number}\n")
        where = ("--policy-from", "refs/remotes/origin/main")
        assert team.approve("alice", after, "--for", ref, *where).code == 0
        assert at_both_doors(team.server, dev, ref, there, after) == ([], [])
        dev.git("checkout", "-q", "-B", "main", after)
    said = ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": built}
    assert Host(dev, team.server, dev, after).check(said).code == 0


@pytest.mark.parametrize("is_first", [True, False])
def test_an_approved_change_of_the_rules_that_landed_beside_another_change_is_not_judged_by_itself(
    tmp_path: Path, is_first: bool
) -> None:
    team = Team.make(tmp_path, GOVERNED)
    dev, before = team.dev, team.head()
    rules = commit_of(dev, before, {"patchgate.toml": GOVERNED + "[policy.commit]\nmax_files = 500\n"})
    assert team.approve("alice", rules, "--for", "refs/heads/main").code == 0
    plain = commit_of(dev, before, {"a": "2\n"})
    head = before
    for side in (rules, plain) if is_first else (plain, rules):
        tree = dev.git("merge-tree", "--write-tree", head, side).decode().split("\n", maxsplit=1)[0]
        merged = dev.ask("commit-tree", tree, "-p", head, "-p", side, "-m", "Merge")
        assert at_both_doors(team.server, dev, "refs/heads/main", head, merged) == ([], [])
        head = merged
    dev.git("update-ref", "refs/remotes/origin/main", head)
    said = ON_JENKINS | {"GIT_COMMIT": head, "GIT_PREVIOUS_COMMIT": before}
    assert Host(dev, team.server, dev, head).check(said).code == 0


def test_what_a_component_learned_between_two_builds_is_not_unlearned(tmp_path: Path) -> None:
    """The promise is made to lose the tests, and taken back: each commit alone is right."""
    shared = Shared(tmp_path)
    dev, built = shared.repo, shared.old
    more = TEXT_OF_TESTS + "\n\ndef test_more() -> None:\n    assert shaping.area(2, 1) == 2\n"
    dev.commit({TESTS: more})
    learned = shared.captured()
    dev.commit({CONTRACT: LATER, TESTS: TEXT_OF_TESTS})
    shared.captured()
    dev.commit({CONTRACT: contract(), TESTS: OTHER})
    after = shared.captured()
    dev.git("update-ref", "refs/remotes/origin/main", after)
    host = Host(dev, shared.server, dev, after)
    for before in (learned, built):
        answer = host.check(ON_JENKINS | {"GIT_COMMIT": after, "GIT_PREVIOUS_COMMIT": before})
        assert (answer.code, set(answer.errors)) == (1, {"drift-tests-weakened"})
