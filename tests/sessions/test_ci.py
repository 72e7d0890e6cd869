"""`check --ci` in clones as the engines make them: what is judged, by whose policy, and what is missing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.approvals.owners_world import GOVERNED, Team
from tests.world import Answer, Content, Repo, pinned_environment

pytestmark = pytest.mark.turns(4)

POLICY = '[policy]\ndeny_prefixes = ["runs"]\n'
STRICT = '[policy]\ndeny_prefixes = ["runs", "docs"]\n'
LOOSE = "[policy]\n"
HEADS, TAGS = "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"


@dataclass
class Host:
    """A server, a developer's repository that pushes to it, and the clone of an engine."""

    dev: Repo
    server: Repo
    ci: Repo
    main: str

    def push(self, branch: str, files: Mapping[str, Content], *, onto: str = "main") -> str:
        """Commit files on a new branch and push it."""
        self.dev.git("checkout", "-q", "-B", branch, onto)
        made = self.dev.commit(files)
        self.dev.git("push", "-q", "-f", "origin", branch)
        self.dev.git("checkout", "-q", "main")
        return made

    def merge(self, head: str, number: int = 1) -> str:
        """Make the merge of a pull request, as the host does, without touching a branch."""
        self.dev.git("checkout", "-q", "--detach", "main")
        self.dev.git("merge", "-q", "--no-ff", "-m", "Merge", head)
        merge = self.dev.head()
        self.dev.git("checkout", "-q", "main")
        refs = [f"{merge}:refs/pull/{number}/merge", f"{head}:refs/pull/{number}/head"]
        self.dev.git("push", "-q", "-f", "origin", *refs)
        return merge

    def land(self, files: Mapping[str, Content]) -> str:
        """Commit files on main and push it."""
        self.dev.commit(files)
        self.dev.git("push", "-q", "-f", "origin", "main")
        return self.dev.head()

    def clone(self, commit: str, *, depth: int = 0, refs: tuple[str, ...] = (HEADS, TAGS)) -> None:
        """Fetch and check out a commit, as actions/checkout and the other engines do."""
        if not (self.ci.path / ".git").exists():
            self.ci.path.mkdir()
            self.ci.git("init", "-q", "-b", "main")
            self.ci.git("remote", "add", "origin", f"file://{self.server.path}")
        shallow = [f"--depth={depth}"] if depth else []
        wanted = () if depth else refs
        self.ci.git(
            "fetch", "-q", "--no-tags", *shallow, "origin", *wanted, f"+{commit}:refs/remotes/pull/1/built"
        )
        self.ci.git("checkout", "-q", "--detach", commit)

    def check(self, variables: Mapping[str, str], *arguments: str, form: str = "json") -> Answer:
        """Run `check --ci` in the clone of the engine."""
        chosen = ("--format", form) if form else ()
        return self.ci.cli("check", "--ci", *chosen, *arguments, cwd=self.ci.path, **variables)

    def event(self, document: object) -> dict[str, str]:
        """Write the event file of GitHub."""
        place = self.ci.path.parent / "event.json"
        place.write_text(json.dumps(document))
        return {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": str(place)}

    def pull(self, head: str, built: str, **changed: str) -> dict[str, str]:
        """Give what GitHub gives for a pull request."""
        pull = {"base": {"ref": "main", "sha": self.main}, "head": {"ref": "x", "sha": head}}
        return {
            **self.event({"pull_request": pull, "repository": {"default_branch": "main"}}),
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REF": "refs/pull/1/merge",
            "GITHUB_BASE_REF": "main",
            "GITHUB_SHA": built,
        } | changed

    def pushed(self, ref: str, before: str, after: str, **said: Any) -> dict[str, str]:
        """Give what GitHub gives for a push."""
        body = {"ref": ref, "before": before, "after": after, "repository": {"default_branch": "main"}}
        variables = {"GITHUB_EVENT_NAME": "push", "GITHUB_REF": ref, "GITHUB_SHA": after}
        return {**self.event(body | said), **variables}

    def rerun(self, built: str, name: str = "schedule") -> dict[str, str]:
        variables = {"GITHUB_EVENT_NAME": name, "GITHUB_REF": "refs/heads/main", "GITHUB_SHA": built}
        return {**self.event({"schedule": "0 0 * * *"}), **variables}


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a server and a clone of it once; each test gets a copy."""
    folder = tmp_path_factory.mktemp("host")
    dev = Repo.create(folder)
    dev.git("init", "-q", "-b", "main", "--bare", str(folder / "srv.git"))
    dev.policy(POLICY)
    dev.git("remote", "add", "origin", "../srv.git")
    dev.git("push", "-q", "-u", "origin", "main")
    dev.at(folder / "srv.git").git("config", "uploadpack.allowAnySHA1InWant", "true")
    return folder


@pytest.fixture
def host(laid_out: Path, tmp_path: Path) -> Host:
    shutil.copytree(laid_out, tmp_path, dirs_exist_ok=True, symlinks=True)
    dev = Repo(tmp_path / "repo", pinned_environment(tmp_path / "home"))
    return Host(dev, dev.at(tmp_path / "srv.git"), dev.at(tmp_path / "ci"), dev.head())


def without_a_push(engine: str, branch: str, built: str) -> dict[str, str]:
    """Give what an engine gives for a branch that got something, if it does not say what was there before."""
    return {
        "Azure": {
            "TF_BUILD": "True",
            "BUILD_REASON": "IndividualCI",
            "BUILD_SOURCEVERSION": built,
            "BUILD_SOURCEBRANCH": f"refs/heads/{branch}",
        },
        "Buildkite": {
            "BUILDKITE": "true",
            "BUILDKITE_COMMIT": built,
            "BUILDKITE_BRANCH": branch,
            "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main",
            "BUILDKITE_PULL_REQUEST": "false",
        },
        "Jenkins": {"JENKINS_URL": "http://ci.invalid", "BRANCH_NAME": branch, "GIT_COMMIT": built},
    }[engine]


BAD = {"runs/record": "evil\n"}
GOOD = {"a.txt": "good\n"}


def judged(answer: Answer) -> list[str]:
    return [change["commit"] for change in answer.changes if change["commit"]]


# --- pull requests


def test_the_merge_of_a_pull_request_and_the_commits_of_its_head_are_judged(host: Host) -> None:
    head = host.push("feature", GOOD)
    host.land({"b.txt": "b\n"})
    merge = host.merge(head)
    host.clone(merge)
    answer = host.check(host.pull(head, merge))
    assert (answer.code, answer.verdict, judged(answer)) == (0, "accepted", [head, merge])


def test_a_pull_request_is_judged_by_the_policy_of_its_base(host: Host) -> None:
    loose = host.push("feature", {"patchgate.toml": LOOSE})
    bad = host.push("feature", BAD, onto=loose)
    merge = host.merge(bad)
    host.clone(merge)
    answer = host.check(host.pull(bad, merge))
    assert (answer.code, "deny-prefix" in answer.errors) == (1, True)
    assert {change["policy"]["from"] for change in answer.changes} == {
        "refs/remotes/origin/main:patchgate.toml"
    }


@pytest.mark.parametrize("place", ["refs/tags/origin/main", "refs/heads/origin/main", "refs/tags/main"])
def test_no_tag_and_no_branch_takes_the_place_of_the_base(host: Host, place: str) -> None:
    bad = host.push("feature", BAD)
    host.dev.git("push", "-q", "origin", f"{bad}:{place}")
    host.clone(bad)
    host.ci.git("update-ref", "refs/tags/refs/remotes/origin/main", bad)
    host.ci.git("update-ref", "refs/heads/origin/main", bad)
    assert host.check(host.pull(bad, bad)).errors == ["deny-prefix"]


def test_the_workflow_of_the_base_judges_a_head_that_is_not_checked_out(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.merge(bad)
    host.clone(host.main, refs=("+refs/heads/main:refs/remotes/origin/main",))
    variables = host.pull(bad, host.main, GITHUB_EVENT_NAME="pull_request_target")
    missing = host.check(variables)
    assert (missing.code, missing.error["hint"]) == (3, f"git fetch origin {bad}")
    host.ci.git("fetch", "-q", "origin", "+refs/pull/1/head:refs/remotes/pull/1/head")
    assert host.check(variables).errors == ["deny-prefix"]


@pytest.mark.parametrize(("path", "code"), [("runs", 3), ("pyproject.toml", 3), ("z", 0)])
def test_where_several_merge_bases_differ_in_a_denied_path_a_stale_head_is_undecided(
    host: Host, path: str, code: int
) -> None:
    """A host begins the merge with what it makes of these, by attributes and settings of its own."""
    start = host.main
    one = host.push("one", {"x": "1\n"}, onto=start)
    host.dev.git("checkout", "-q", "main")
    two = host.land({path: "# patchgate\n"})
    merged = joined(host, two, one)
    host.dev.git("merge", "-q", "--ff-only", merged)
    host.main = host.land({path: "# patchgate, too\n"})
    head = host.push("head", GOOD, onto=joined(host, one, two))
    host.clone(head)
    assert host.check(host.pull(head, head)).code == code


@pytest.mark.parametrize(
    "engine",
    [
        *("GitHub", "GitLab", "Jenkins", "Jenkins, into the head", "none"),
        *("Jenkins, a branch", "Buildkite, a branch", "Azure, a branch"),
    ],
)
def test_the_head_of_a_merge_with_an_older_base_is_merged_with_the_base_of_now(
    host: Host, engine: str
) -> None:
    """The base has moved a file to where the head may not change it, after what is built was merged."""
    lines = [f"line {number}\n" for number in range(30)]
    start = host.land({"a": "".join(lines)})
    head = host.push("feature", {"a": "".join(["evil\n", *lines[1:]])}, onto=start)
    host.dev.git("checkout", "-q", "main")
    before = host.land({"a": "".join([*lines[:5], *(f"other {number}\n" for number in range(30))])})
    built = joined(host, *((head, before) if "into" in engine else (before, head)))
    # No branch has what an engine merges.
    host.dev.git("push", "-q", "origin", f"{built}:refs/pull/1/merge", ":refs/heads/joined")
    host.dev.git("checkout", "-q", "main")
    host.dev.git("rm", "-q", "a")
    host.main = host.land({"runs": "".join(lines)})
    host.clone(built)
    name = engine.partition(",")[0]
    said = {
        "GitHub": host.pull(head, built),
        "GitLab": merge_request(
            host,
            built,
            CI_MERGE_REQUEST_EVENT_TYPE="merged_result",
            CI_MERGE_REQUEST_TARGET_BRANCH_SHA=before,
            CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=head,
        ),
        "Jenkins": {"JENKINS_URL": "http://ci.invalid", "CHANGE_ID": "1", "CHANGE_TARGET": "main"},
        "none": {},
    } | {each: without_a_push(each, "pr/1/merge", built) for each in (name,) if "a branch" in engine}
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    assert host.check(said[name]).errors == ["deny-prefix"]


@pytest.mark.parametrize("end", ["\u2028", "\u0085", "\f"])
def test_no_name_of_a_branch_is_two_names(host: Host, end: str) -> None:
    """Else a tag of an open head counts as one of the default branch, with which it is not merged."""
    lines = "".join(f"line {number}\n" for number in range(30))
    start = host.land({"a": lines})
    head = host.push("feature", {"a": lines.replace("line 20", "evil")}, onto=start)
    host.dev.git("checkout", "-q", "main")
    host.dev.git("mv", "a", "runs")
    listed = '[push]\nprotected_refs = ["refs/heads/main"]\n'
    host.main = host.land({"patchgate.toml": POLICY + listed})
    host.clone(head)
    if end != "\f":
        host.ci.git("update-ref", f"refs/remotes/origin/e{end}refs/remotes/origin/main", head)
    said = host.pushed("refs/tags/v1", "0" * 40, head)
    assert host.check(said).errors == ["deny-prefix"]


def test_an_entry_of_a_queue_may_be_on_top_of_one_that_has_not_landed(host: Host) -> None:
    first = host.push("first", GOOD)
    second = host.push("second", {"b.txt": "b\n"}, onto=first)
    host.clone(second)
    group = {"base_ref": "refs/heads/main", "base_sha": first, "head_sha": second}
    queued = {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF": "refs/heads/q", "GITHUB_SHA": second}
    answer = host.check(host.event({"merge_group": group}) | queued)
    assert (answer.code, judged(answer)) == (0, [first, second])


@pytest.mark.parametrize("is_beside", [False, True])
def test_what_comes_with_a_change_of_the_rules_is_judged_by_them_too(host: Host, is_beside: bool) -> None:
    """That change may land first: a host may take the other one as up to date then."""
    strict = host.push("first", {"patchgate.toml": STRICT})
    docs = host.push("second", {"docs/a": "a\n"}) if is_beside else None
    if docs is None:
        host.dev.git("checkout", "-q", "--detach", strict)
        docs = host.dev.commit({"docs/a": "a\n"})
    head = joined(host, strict, docs) if is_beside else docs
    host.dev.git("push", "-q", "-f", "origin", f"{head}:refs/heads/second")
    host.clone(head)
    assert "deny-prefix" in host.check(host.pull(head, head)).errors
    host.clone(strict)
    assert host.check(host.pull(strict, strict)).code == 0


def test_no_line_approves_by_rules_that_are_refused_themselves(host: Host) -> None:
    """Those of another branch, for which the approval would be."""
    other = host.push("other", {"patchgate.toml": STRICT, "unrelated": "1\n"})
    above = host.push("above", {"runs/a": "a\n"}, onto=other)
    host.clone(above)
    answer = host.check(host.pull(above, above))
    assert {"policy-change-not-alone", "deny-prefix"} <= set(answer.errors)
    assert answer.report["approve"] is None


def test_by_rules_of_another_repository_nothing_else_is_judged(host: Host) -> None:
    """An approval by them would name that repository, and count there."""
    host.land({"patchgate.toml": '[governance]\nid = "repository-1"\n'})
    host.main = host.dev.head()
    other = host.push("other", {"patchgate.toml": '[governance]\nid = "repository-2"\n'})
    above = host.push("above", {"docs/a": "a\n"}, onto=other)
    for head, code in ((above, 3), (other, 1)):
        host.clone(head)
        assert host.check(host.pull(head, head)).code == code


def test_a_pull_request_whose_commits_the_base_has_is_undecided(host: Host) -> None:
    """Whoever has moved the base in this clone would be answered that nothing was proposed."""
    head = host.push("side", {"b": "b\n"})
    host.clone(head)
    assert host.check(host.pull(head, head)).code == 0
    host.ci.git("update-ref", "refs/remotes/origin/main", head)
    assert host.check(host.pull(head, head)).code == 3
    merge = host.merge(head)
    host.clone(merge)
    host.ci.git("update-ref", "refs/remotes/origin/main", head)
    assert host.check(host.pull(head, merge)).code == 3


def test_an_entry_of_a_queue_lands_under_the_rules_of_the_entry_before_it(host: Host) -> None:
    strict = host.push("first", {"patchgate.toml": STRICT})
    docs = host.push("second", {"docs/a": "a\n"})
    host.clone(docs)
    assert host.check(host.pull(docs, docs)).code == 0
    entry = joined(host, strict, docs)
    host.clone(entry)
    group = {"base_ref": "refs/heads/main", "base_sha": strict, "head_sha": entry}
    queued = {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF": "refs/heads/q", "GITHUB_SHA": entry}
    assert "deny-prefix" in host.check(host.event({"merge_group": group}) | queued).errors


@pytest.mark.parametrize("engine", ["github", "gitlab", "buildkite"])
def test_an_entry_of_a_queue_does_not_undo_what_the_entry_before_it_did(host: Host, engine: str) -> None:
    host.main = host.land({"runs/a": "a hole\n"})
    fixed = host.push("fixed", {"runs/a": "closed\n"})
    side = host.push("side", {"b": "b\n"})
    host.dev.git("checkout", "-q", "--detach", side)
    # What it has does not differ from what the branch has.
    host.dev.git("merge", "-q", "--no-ff", "--no-verify", "-s", "ours", "-m", "Merge", fixed)
    undone = host.dev.head()
    first = joined(host, host.push("other", {"c": "c\n"}), fixed)
    entry = joined(host, first, undone)
    host.clone(entry)
    group = {"merge_group": {"base_ref": "refs/heads/main", "base_sha": first, "head_sha": entry}}
    queued = {
        "github": host.event(group)
        | {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF": "refs/heads/q", "GITHUB_SHA": entry},
        "gitlab": merge_request(
            host,
            entry,
            CI_MERGE_REQUEST_EVENT_TYPE="merge_train",
            CI_MERGE_REQUEST_TARGET_BRANCH_SHA=first,
            CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=undone,
        ),
        "buildkite": {
            "BUILDKITE": "true",
            "BUILDKITE_COMMIT": entry,
            "BUILDKITE_BRANCH": "gh-readonly-queue/main/x",
            "BUILDKITE_MERGE_QUEUE_BASE_BRANCH": "main",
            "BUILDKITE_MERGE_QUEUE_BASE_COMMIT": first,
            "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main",
        },
    }[engine]
    answer = host.check(queued)
    refused = {each["commit"] for each in answer.changes if each["verdict"] == "rejected"}
    assert refused > {fixed}, answer.err


def test_a_report_replaces_no_pipe(host: Host) -> None:
    """Nor a device, such as what `/dev/stdout` leads to: in containers jobs run as root."""
    after = host.land(GOOD)
    host.clone(after)
    pipe, link = (host.ci.path.parent / name for name in ("pipe", "link"))
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    for place in (pipe, link):
        pushed = host.pushed("refs/heads/main", host.main, after)
        assert host.check(pushed, "--output-file", f"sarif={place}").code == 0
        assert b"sarif" in os.read(reader, 1 << 16)
    os.close(reader)
    assert (link.is_symlink(), pipe.is_fifo()) == (True, True)


def test_an_entry_of_a_queue_that_comes_as_a_push_is_undecided(host: Host) -> None:
    """Nothing says which entry is before it."""
    after = host.push("gh-readonly-queue/main/pr-2", GOOD)
    host.clone(after)
    ref = "refs/heads/gh-readonly-queue/main/pr-2"
    pushed = {
        "BUILDKITE": "true",
        "BUILDKITE_COMMIT": after,
        "BUILDKITE_BRANCH": ref.removeprefix("refs/heads/"),
    }
    none: dict[str, str] = {}
    for said in (host.pushed(ref, "0" * 40, after), pushed | {"BUILDKITE_SOURCE": "webhook"}, none):
        assert host.check(said).code == 3
    # The same commit may be proposed, or pushed under another name.
    assert host.check(host.pull(after, after)).code == 3
    assert host.check(host.pushed("refs/heads/other", "0" * 40, after)).code == 3
    merge = host.merge(after)
    host.clone(merge)
    assert host.check(host.pull(after, merge)).code == 3
    # What stands on it may be what the queue makes next.
    above = host.push("above", {"docs/y.md": "y\n"}, onto=after)
    host.clone(above)
    assert host.check(host.pull(above, above)).code == 3
    host.clone(after)
    host.ci.git("update-ref", "-d", f"refs/remotes/origin/{ref.removeprefix('refs/heads/')}")
    assert host.check(host.pull(after, after)).code == 0


def joined(host: Host, *parents: str) -> str:
    """Merge commits, and push the merge."""
    host.dev.git("checkout", "-q", "--detach", parents[0])
    host.dev.git("merge", "-q", "--no-ff", "--no-verify", "-m", "Merge", *parents[1:])
    made = host.dev.head()
    host.dev.git("push", "-q", "-f", "origin", f"{made}:refs/heads/joined")
    host.dev.git("checkout", "-q", "main")
    return made


def undecided(answer: Answer) -> str:
    """Return why a check could not decide about its last change."""
    assert answer.code == 3
    return next(str(each["reason"]) for each in answer.report["changes"][-1]["gates"] if each.get("reason"))


def test_a_conflict_of_the_policy_in_pyproject_is_undecided_in_a_stale_head(host: Host) -> None:
    text = '[tool.patchgate.policy]\ndeny_prefixes = ["runs"]\n[tool.patchgate.rules]\ndeny-prefix = "off"\n'
    host.dev.git("rm", "-q", "patchgate.toml")
    host.land({"pyproject.toml": text})
    head = host.push("stale", {"pyproject.toml": text.replace('"off"', '"off" # so')})
    host.land({"pyproject.toml": text.replace('deny-prefix = "off"\n', "")})
    host.main = host.dev.head()
    host.clone(head)
    assert "both sides have changed pyproject.toml" in undecided(host.check(merge_request(host, head)))


def test_a_conflict_of_the_policy_is_not_left_to_the_host(host: Host) -> None:
    head = host.push("stale", {"patchgate.toml": POLICY.replace('"runs"', '"runs", "b"')})
    host.main = host.land({"patchgate.toml": POLICY.replace('"runs"', '"runs", "c"')})
    host.clone(head)
    assert "both sides have changed patchgate.toml" in undecided(host.check(merge_request(host, head)))


@pytest.mark.parametrize(
    ("line", "code"), [('"patchgate>=1"', 0), ("'patchgate[x]'", 0), ('"patchgate"', 3), ('"\\u0070"', 3)]
)
def test_where_both_sides_change_a_file_that_may_name_a_policy_a_stale_head_is_undecided(
    host: Host, line: str, code: int
) -> None:
    """Which lines stand in a text that nobody reads may depend on the program that joins them."""
    text = "".join(f"# {number}\n" for number in range(20))
    start = host.land({"pyproject.toml": f"{text}a = [{line}]\n"})
    head = host.push("stale", {"pyproject.toml": f"# x\n{text}a = [{line}]\n"}, onto=start)
    host.dev.git("checkout", "-q", "main")
    host.main = host.land({"pyproject.toml": f"{text}a = [{line}]\nb = 1\n"})
    host.clone(head)
    assert host.check(merge_request(host, head)).code == code


def test_a_base_that_is_cut_off_has_no_coming_merge(host: Host) -> None:
    text = "".join(f"line {number}\n" for number in range(30))
    host.land({"lib/x": text})
    head = host.push("feature", {"lib/x": text.replace("line 20", "evil")})
    host.dev.git("mv", "lib/x", "runs")
    host.dev.git("commit", "-q", "--no-verify", "-m", "Move")
    host.dev.git("push", "-q", "-f", "origin", "main")
    host.dev.git("push", "-q", "origin", f"{head}:refs/pull/1/head")
    host.main = host.dev.head()
    variables = host.pull(head, host.main, GITHUB_EVENT_NAME="pull_request_target")
    host.clone(host.dev.head(), depth=1)
    host.ci.git("update-ref", "refs/remotes/origin/main", host.dev.head())
    host.ci.git("fetch", "-q", "origin", "+refs/pull/1/head:refs/remotes/pull/1/head")
    answer = host.check(variables)
    assert (answer.code, "shallow" in answer.error["message"]) == (3, True)


def merge_request(host: Host, built: str, **changed: str) -> dict[str, str]:
    """Give what GitLab gives for a merge request."""
    return {
        "GITLAB_CI": "true",
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_COMMIT_SHA": built,
        "CI_DEFAULT_BRANCH": "main",
        "CI_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_PROJECT_ID": "1",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        "CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED": "true",
        "CI_MERGE_REQUEST_EVENT_TYPE": "detached",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": host.main,
    } | changed


def test_gitlab_s_merged_results_are_judged_against_their_target(host: Host) -> None:
    head = host.push("feature", BAD)
    merge = host.merge(head)
    host.clone(merge)
    merged = {"CI_MERGE_REQUEST_EVENT_TYPE": "merged_result", "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": head}
    merged["CI_MERGE_REQUEST_TARGET_BRANCH_SHA"] = host.main
    assert host.check(merge_request(host, merge, **merged)).errors == ["deny-prefix"]


@pytest.mark.parametrize("kind", ["merged_result", "merge_train"])
def test_the_head_of_a_merge_request_is_compared_with_the_default_branch(host: Host, kind: str) -> None:
    """What is built is its merge with a branch of its author, where git carries the edit elsewhere."""
    text = "".join(f"line {number}\n" for number in range(30))
    host.land({"a": text})
    head = host.push("feature", {"a": text.replace("line 20", "evil")})
    host.dev.git("mv", "a", "runs")
    host.dev.git("commit", "-q", "--no-verify", "-m", "Move")
    host.main = host.land({})
    there = host.push("open", {"a": text})
    merge = joined(host, there, head)
    host.clone(merge)
    said = merge_request(
        host,
        merge,
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="open",
        CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED="false",
        CI_MERGE_REQUEST_EVENT_TYPE=kind,
        CI_MERGE_REQUEST_TARGET_BRANCH_SHA=there,
        CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=head,
    )
    assert host.check(said).errors == ["deny-prefix"]


def test_a_train_may_build_a_squashed_head(host: Host) -> None:
    head = host.push("feature", GOOD)
    squashed = host.push("squashed", GOOD)
    merge = joined(host, host.main, squashed)
    host.clone(merge)
    said = merge_request(
        host,
        merge,
        CI_MERGE_REQUEST_EVENT_TYPE="merge_train",
        CI_MERGE_REQUEST_TARGET_BRANCH_SHA=host.main,
        CI_MERGE_REQUEST_SOURCE_BRANCH_SHA=head,
    )
    assert host.check(said).code == 0


def test_a_merge_request_for_a_branch_without_protection_gets_no_looser_policy(host: Host) -> None:
    loose = host.push("loose", {"patchgate.toml": LOOSE})
    bad = host.push("feature", BAD, onto=loose)
    host.clone(bad)
    target = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "loose", "CI_MERGE_REQUEST_DIFF_BASE_SHA": loose}
    assert host.check(merge_request(host, bad, **target)).code == 0
    answer = host.check(merge_request(host, bad, **target, CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED="false"))
    assert "deny-prefix" in answer.errors
    assert "loose is not protected: compared with main" in answer.report["warnings"]


# --- claims that do not fit


def test_a_base_that_is_not_what_the_engine_says_is_undecided(host: Host) -> None:
    head = host.push("feature", GOOD)
    other = host.push("other", {"b.txt": "b\n"})
    host.clone(head)
    pull = {"base": {"ref": "main", "sha": other}, "head": {"sha": head}}
    answer = host.check(host.pull(head, head) | host.event({"pull_request": pull}))
    assert answer.code == 3
    assert answer.error["hint"].startswith("git fetch origin +refs/heads/main:refs/remotes/origin/main")


def test_where_engine_and_clone_name_two_default_branches_there_is_no_verdict(host: Host) -> None:
    """A pipeline keeps its setting where the host renames the branch, and others may make the old one."""
    loose = host.push("master", {"patchgate.toml": LOOSE})
    bad = host.push("feature", BAD, onto=loose)
    host.clone(bad)
    host.ci.git("remote", "set-head", "origin", "--auto")
    said = without_a_push("Buildkite", "feature", bad)
    assert "deny-prefix" in host.check(said).errors
    answer = host.check(said | {"BUILDKITE_PIPELINE_DEFAULT_BRANCH": "master"})
    assert (answer.code, "git remote set-head origin --auto" in answer.error["hint"]) == (3, True)


def test_a_base_that_only_the_head_has_is_undecided(host: Host) -> None:
    first = host.push("feature", GOOD)
    head = host.push("feature", {"b.txt": "b\n"}, onto=first)
    host.clone(head)
    pull = {"base": {"ref": "main", "sha": first}, "head": {"sha": head}}
    assert host.check(host.pull(head, head) | host.event({"pull_request": pull})).code == 3


def test_an_old_base_in_a_clone_that_was_kept_is_undecided(host: Host) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    host.main = host.land({"b.txt": "b\n"})
    host.ci.git("fetch", "-q", "origin", host.main)
    assert host.check(host.pull(head, head)).code == 3


def test_a_commit_that_the_engine_does_not_build_is_undecided(host: Host) -> None:
    bad = host.push("feature", BAD)
    good = host.push("other", GOOD)
    host.clone(bad)
    host.ci.git("checkout", "-q", "--detach", good)
    answer = host.check(host.pull(bad, bad))
    assert (answer.code, answer.error["hint"]) == (3, f"git checkout --detach {bad}")
    # A commit that GITHUB_SHA names, without the head of the event.
    assert host.check(host.pull(bad, good)).code == 3


def test_what_is_missing_is_undecided_with_the_command_that_brings_it(host: Host) -> None:
    head = host.push("feature", GOOD)
    host.clone(head, refs=())
    missing = host.check(host.pull(head, head))
    assert missing.code == 3
    host.ci.git(*missing.error["hint"].split()[1:])
    assert host.check(host.pull(head, head)).code == 0


@pytest.mark.parametrize("depth", [1, 2])
def test_a_shallow_clone_is_undecided_until_the_hint_is_run(host: Host, depth: int) -> None:
    first = host.push("feature", BAD)
    head = host.push("feature", GOOD, onto=host.push("feature", {"b.txt": "b\n"}, onto=first))
    merge = host.merge(head)
    host.clone(merge, depth=depth)
    answer = host.check(host.pull(head, merge))
    assert (answer.code, answer.error["hint"].split()[:3]) == (3, ["git", "fetch", "--unshallow"])
    host.ci.git(*answer.error["hint"].split()[1:])
    assert host.check(host.pull(head, merge)).errors == ["deny-prefix"]


def test_a_shallow_clone_of_every_other_kind_is_undecided_with_the_command(host: Host) -> None:
    after = host.land(GOOD)
    host.clone(after, depth=1)
    host.ci.git("update-ref", "refs/remotes/origin/main", after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    first = host.pushed("refs/heads/main", "0" * 40, after)
    for variables in ({}, host.rerun(after), first, host.pushed("refs/heads/main", host.main, after)):
        answer = host.check(variables)
        assert (answer.code, answer.error["hint"]) == (3, "git fetch --unshallow origin")


def test_an_abbreviated_id_names_no_commit(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path, "--object-format=sha256")
    repo.git("remote", "add", "origin", str(repo.path))
    before, after = repo.policy(POLICY), repo.commit(GOOD)
    pushed = {"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": "push", "CI_COMMIT_SHA": after}
    pushed |= {"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": "main"}
    assert repo.check("--ci", cwd=repo.path, **pushed, CI_COMMIT_BEFORE_SHA=before).code == 0
    assert repo.check("--ci", cwd=repo.path, **pushed, CI_COMMIT_BEFORE_SHA=before[:40]).code == 3


def test_the_command_for_a_branch_with_a_strange_name_is_quoted(host: Host) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    strange = "a;$(id)'b"
    pull = {"base": {"ref": strange, "sha": host.main}, "head": {"sha": head}}
    variables = host.pull(head, head, GITHUB_BASE_REF=strange) | host.event({"pull_request": pull})
    hint = host.check(variables).error["hint"]
    assert hint.startswith("git fetch origin '+refs/heads/a;$(id)'\"'\"'b:")


# --- pushes, tags, schedules


def test_a_push_to_the_default_branch_is_judged_by_what_it_had_before(host: Host) -> None:
    host.land({"patchgate.toml": LOOSE})
    after = host.land(BAD)
    host.clone(after)
    answer = host.check(host.pushed("refs/heads/main", host.main, after, forced=False))
    assert ("deny-prefix" in answer.errors, len(judged(answer))) == (True, 2)


def test_a_forced_push_is_judged_by_what_was_there_and_says_so(host: Host) -> None:
    lost = host.land({"b.txt": "b\n"})
    host.dev.git("reset", "-q", "--hard", host.main)
    after = host.land(BAD)
    host.clone(after)
    said = host.pushed("refs/heads/main", lost, after, forced=True)
    missing = host.check(said)
    assert (missing.code, missing.error["hint"]) == (3, f"git fetch origin {lost}")
    host.ci.git("fetch", "-q", "origin", lost)
    answer = host.check(said)
    assert answer.errors == ["ref-forced", "deny-prefix"]
    assert any("forced" in text for text in answer.report["warnings"])
    assert host.check(host.pushed("refs/heads/main", lost, after, forced=False)).code == 3


@pytest.mark.parametrize("listed", ["", "refs/heads/release/*"])
def test_the_default_branch_that_has_owners_is_not_forced_though_no_list_names_it(
    host: Host, listed: str
) -> None:
    owners = f'[[owners]]\npaths = ["infra/**"]\n[push]\nprotected_refs = ["{listed}"]\n'
    base = host.land({"patchgate.toml": POLICY + (owners if listed else owners.replace('""', ""))})
    lost = host.land({"b.txt": "b\n"})
    host.dev.git("reset", "-q", "--hard", base)
    after = host.land(GOOD)
    host.clone(after)
    host.ci.git("fetch", "-q", "origin", lost)
    answer = host.check(host.pushed("refs/heads/main", lost, after, forced=True))
    assert answer.errors == ["ref-forced"]


def test_what_a_forced_push_replaces_is_not_merged_with_it(host: Host) -> None:
    lines = "".join(f"{number}\n" for number in range(40))
    base = host.land({"long.txt": lines})
    (host.dev.path / "runs").mkdir()
    host.dev.git("mv", "long.txt", "runs/long.txt")
    lost = host.land({})
    host.dev.git("reset", "-q", "--hard", base)
    after = host.land({"long.txt": lines.replace("20\n", "twenty\n")})
    host.clone(after)
    host.ci.git("fetch", "-q", "origin", lost)
    answer = host.check(host.pushed("refs/heads/main", lost, after, forced=True))
    assert answer.errors == ["ref-forced"]


def test_the_components_of_a_forced_push_are_those_of_its_head(tmp_path: Path) -> None:
    """Nobody merges it: what it lost on the way is seen, though what was there had it."""
    from tests.component_world import POLICY as COMPONENTS
    from tests.component_world import TESTS, TEXT_OF_TESTS
    from tests.sessions.test_findings_unlearned import WEAK, Shared

    shared = Shared(tmp_path, COMPONENTS + '\n[rules]\nref-forced = "warning"\n')
    repo = shared.repo
    weak = repo.commit({TESTS: WEAK}, "Lose a test")
    lost = repo.commit({TESTS: TEXT_OF_TESTS}, "Bring it back")
    repo.git("update-ref", "refs/remotes/origin/main", lost)
    repo.git("reset", "-q", "--hard", weak)
    host = Host(repo, shared.server, repo, lost)
    for after in (weak, repo.commit({"notes.txt": "x\n"})):
        repo.git("checkout", "-q", "--detach", after)
        answer = host.check(host.pushed("refs/heads/main", lost, after, forced=True))
        assert (answer.code, answer.errors) == (1, ["drift-tests-weakened"])


def test_a_tag_on_a_protected_branch_is_not_merged_into_the_default_branch(host: Host) -> None:
    listed = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    host.main = host.land({"patchgate.toml": POLICY + listed})
    head = host.push("release/1", {"patchgate.toml": STRICT + listed})
    other = host.push("feature", {"patchgate.toml": STRICT + "\n" + listed})
    host.main = host.land({"patchgate.toml": LOOSE + listed})
    for tip, code in ((head, 0), (other, 3)):
        host.dev.git("push", "-q", "-f", "origin", f"{tip}:refs/tags/v1")
        host.clone(tip)
        answer = host.check(host.pushed("refs/tags/v1", "0" * 40, tip))
        assert (answer.code, judged(answer)[:1]) == (code, [tip])


def test_a_conflict_is_joined_as_the_default_branch_asks(host: Host) -> None:
    """A bare repository follows the attributes of its HEAD (git 2.43 to 2.45)."""
    deny = (
        '[content]\ndeny = ["verify=False"]\n[push]\nprotected_refs = ["refs/heads/main", "refs/heads/v1"]\n'
    )
    body = "".join(f"{number}\n" for number in range(30))
    host.land({"patchgate.toml": deny})
    base = host.land({"a.py": f"x\nverify=False\ny\n{body}"})
    host.land({".gitattributes": "* merge=union\n"})
    there = host.push("v1", {"a.py": f"x\ny\n{body}"}, onto=base)
    head = host.push("feature", {"a.py": f"x2\nverify=False\ny\n{body}"}, onto=base)
    host.clone(head)
    named = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "v1", "CI_MERGE_REQUEST_DIFF_BASE_SHA": base}
    said = merge_request(host, head, **named)
    answer = host.check(said)
    assert (answer.errors, judged(answer)) == (["deny-content"], [head])
    assert there == host.ci.ask("rev-parse", "refs/remotes/origin/v1")
    # An engine that does not name it, and a clone that does not have it.
    jenkins = {
        "JENKINS_URL": "http://ci.invalid",
        "CHANGE_ID": "1",
        "CHANGE_TARGET": "v1",
        "GIT_COMMIT": head,
    }
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    assert host.check(jenkins).errors == ["deny-content"]
    host.ci.git("symbolic-ref", "--delete", "refs/remotes/origin/HEAD")
    host.ci.git("update-ref", "-d", "refs/remotes/origin/main")
    assert host.check(said).errors == ["deny-content"]


def test_git_reads_the_attributes_that_are_the_text_of_a_link(host: Host) -> None:
    host.land({"patchgate.toml": '[content]\ndeny = ["verify=False"]\n'})
    os.symlink("* merge=union", host.dev.path / ".gitattributes")
    body = "".join(f"{number}\n" for number in range(30))
    base = host.land({"a.py": f"x\nverify=False\ny\n{body}"})
    host.main = host.land({"a.py": f"x\ny\n{body}"})
    head = host.push("feature", {"a.py": f"x2\nverify=False\ny\n{body}"}, onto=base)
    host.clone(head)
    said = host.pull(head, head) | {
        "GITHUB_EVENT_NAME": "pull_request_target",
        "GITHUB_REF": "refs/heads/main",
    }
    assert "deny-content" in host.check(said).errors


def test_a_forced_push_of_a_branch_without_a_policy_is_judged_by_the_default_branchs(host: Host) -> None:
    base = host.main
    listed = '[push]\nprotected_refs = ["refs/heads/*"]\n[rules]\nref-forced = "warning"\n'
    host.dev.git("checkout", "-q", "-B", "release/1", base)
    host.dev.git("rm", "-q", "patchgate.toml")
    bare = host.dev.commit({"a.txt": "x\n"})
    host.dev.git("checkout", "-q", "main")
    host.land({"patchgate.toml": POLICY + listed})
    lost = host.push("release/1", GOOD, onto=bare)
    after = host.push("release/1", {"b.txt": "x\n"}, onto=bare)
    host.clone(after)
    host.ci.git("fetch", "-q", "origin", lost)
    said = host.pushed("refs/heads/release/1", lost, after, forced=True) | {"GITHUB_REF_PROTECTED": "true"}
    answer = host.check(said)
    assert (answer.code, [each["rule"] for each in answer.findings]) == (0, ["ref-forced"])


@pytest.mark.parametrize("level", ["error", "warning"])
def test_a_forced_push_is_judged_by_what_the_default_branch_protects_now(host: Host, level: str) -> None:
    old = '[push]\nprotected_refs = ["refs/heads/main"]\n[rules]\nref-forced = "warning"\n'
    base = host.land({"patchgate.toml": POLICY + old})
    lost = host.push("release/1", GOOD, onto=base)
    after = host.push("release/1", {"b.txt": "x\n"}, onto=base)
    listed = f'[push]\nprotected_refs = ["refs/heads/*"]\n[rules]\nref-forced = "{level}"\n'
    host.land({"patchgate.toml": POLICY + listed})
    host.clone(after)
    host.ci.git("fetch", "-q", "origin", lost)
    said = host.pushed("refs/heads/release/1", lost, after, forced=True) | {"GITHUB_REF_PROTECTED": "true"}
    answer = host.check(said)
    assert (answer.code, [each["rule"] for each in answer.findings]) == (
        int(level == "error"),
        ["ref-forced"],
    )


@pytest.mark.parametrize("is_listed_by", ["default", "itself"])
def test_a_branch_that_a_policy_lists_is_protected_whatever_the_host_says(
    host: Host, is_listed_by: str
) -> None:
    """Gitea and Forgejo say of no branch that it is protected."""
    listed = POLICY + '[push]\nprotected_refs = ["refs/heads/release/*"]\n'
    base = host.main
    if is_listed_by == "default":
        base = host.land({"patchgate.toml": listed})
    policy = {} if is_listed_by == "default" else {"patchgate.toml": listed}
    lost = host.push("release/1", GOOD | policy, onto=base)
    after = host.push("release/1", {"b.txt": "x\n"}, onto=base)
    host.clone(after)
    host.ci.git("fetch", "-q", "origin", lost)
    said = host.pushed("refs/heads/release/1", lost, after, forced=True)
    answer = host.check(said | {"GITEA_ACTIONS": "true", "GITHUB_REF_PROTECTED": "false"})
    assert answer.errors[0] == "ref-forced"


def test_a_merge_request_for_a_branch_that_lists_itself_is_judged_by_that(host: Host) -> None:
    """The pipeline of the head names only the merge base, which may be older than the list."""
    base = host.main
    host.push("release/1", {"patchgate.toml": STRICT + '[push]\nprotected_refs = ["refs/heads/release/*"]\n'})
    head = host.push("feature", {"docs/x": "1\n"}, onto=base)
    host.clone(head)
    said = merge_request(
        host,
        head,
        CI_MERGE_REQUEST_TARGET_BRANCH_NAME="release/1",
        CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED="false",
        CI_MERGE_REQUEST_DIFF_BASE_SHA=base,
    )
    assert host.check(said).errors == ["deny-prefix"]


def test_a_branch_that_lists_itself_is_judged_as_an_open_one_too(host: Host) -> None:
    own = '[policy]\n[push]\nprotected_refs = ["refs/heads/feature"]\n'
    before = host.push("feature", {"patchgate.toml": own})
    after = host.push("feature", BAD, onto=before)
    host.clone(after)
    assert "deny-prefix" in host.check(host.pushed("refs/heads/feature", before, after)).errors


def test_a_listed_branch_whose_push_is_not_known_is_judged_as_an_open_one_too(host: Host) -> None:
    host.main = host.land({"patchgate.toml": POLICY + '[push]\nprotected_refs = ["refs/heads/release/*"]\n'})
    bad = host.push("release/1", BAD)
    after = host.push("release/1", GOOD, onto=bad)
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    said = {"JENKINS_URL": "http://ci.invalid", "BRANCH_NAME": "release/1", "GIT_COMMIT": after}
    assert host.check(said).errors == ["deny-prefix"]


@pytest.mark.parametrize("engine", ["Azure", "Buildkite", "Jenkins", "GitHub"])
def test_a_push_that_takes_away_the_list_of_its_branch_is_judged_by_it(host: Host, engine: str) -> None:
    """No push is named there, so the branch has what it has got already."""
    own = POLICY.replace('"runs"', '"runs", "docs"') + '[push]\nprotected_refs = ["refs/heads/release/*"]\n'
    had = host.push("release/1", {"patchgate.toml": own})
    after = host.push("release/1", {"patchgate.toml": POLICY, "docs/x": "1\n"}, onto=had)
    host.clone(after)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    if engine == "GitHub":
        said = host.rerun(after, "workflow_dispatch") | {"GITHUB_REF": "refs/heads/release/1"}
    else:
        said = without_a_push(engine, "release/1", after)
    assert "deny-prefix" in host.check(said).errors


@pytest.mark.parametrize("kind", ["merge request", "push", "tag"])
def test_while_the_policy_of_the_default_branch_cannot_be_read_nothing_is_judged_by_its_author(
    host: Host, kind: str
) -> None:
    loose = host.push("there", {"patchgate.toml": LOOSE})
    bad = host.push("feature", BAD, onto=loose)
    host.dev.git("checkout", "-q", "main")
    host.main = host.land({"patchgate.toml": "[policy\n"})
    host.clone(bad)
    said = {
        "merge request": merge_request(
            host,
            bad,
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME="there",
            CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED="false",
            CI_MERGE_REQUEST_DIFF_BASE_SHA=loose,
        ),
        "push": host.pushed("refs/heads/feature", loose, bad),
        "tag": host.pushed("refs/tags/v1", loose, bad),
    }[kind]
    assert host.check(said).code != 0


def test_what_a_branch_gets_together_with_the_default_one_is_judged_by_its_own_list(host: Host) -> None:
    own = POLICY.replace('"runs"', '"runs", "docs"') + '[push]\nprotected_refs = ["refs/heads/release/*"]\n'
    had = host.push("release/1", {"patchgate.toml": own})
    after = host.push("release/1", {"docs/x": "1\n"}, onto=had)
    back = host.push("other", {"patchgate.toml": POLICY}, onto=after)
    host.dev.git("push", "-q", "origin", f"{back}:refs/heads/main")
    host.clone(after)
    assert "deny-prefix" in host.check(host.pushed("refs/heads/release/1", had, after)).errors


def test_while_the_policy_of_the_default_branch_cannot_be_read_no_branch_is_forced(host: Host) -> None:
    listed = POLICY + '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release/*"]\n'
    base = host.main
    lost = host.push("release/1", GOOD, onto=base)
    host.dev.git("checkout", "-q", "main")
    host.land({"patchgate.toml": listed})
    host.main = host.land({"patchgate.toml": "[policy\n"})
    host.push("release/1", {}, onto=base)
    host.clone(base)
    host.ci.git("fetch", "-q", "origin", lost)
    assert host.check(host.pushed("refs/heads/release/1", lost, base, forced=True)).code != 0


def test_an_open_branch_called_main_is_judged_by_its_own_policy_as_on_a_server(host: Host) -> None:
    base = host.push("trunk", {"patchgate.toml": LOOSE + '[push]\nprotected_refs = ["refs/heads/trunk"]\n'})
    had = host.push("main", {"patchgate.toml": POLICY}, onto=base)
    after = host.push("main", BAD, onto=had)
    host.clone(after)
    said = host.pushed("refs/heads/main", had, after)
    event = json.loads(Path(said["GITHUB_EVENT_PATH"]).read_text())
    said |= host.event(event | {"repository": {"default_branch": "trunk"}})
    assert "deny-prefix" in host.check(said).errors


@pytest.mark.parametrize("is_here", [True, False])
def test_an_open_branch_called_main_is_as_open_as_another(host: Host, is_here: bool) -> None:
    """Where the default branch is another, and names what it protects, this name means nothing."""
    listed = POLICY + '[push]\nprotected_refs = ["refs/heads/trunk"]\n'
    base = host.push("trunk", {"patchgate.toml": listed})
    plain = host.push("main", {"patchgate.toml": POLICY}, onto=base)
    lost = host.push("main", GOOD, onto=plain)
    after = host.push("main", {"b.txt": "x\n"}, onto=plain)
    host.clone(after)
    if is_here:
        host.ci.git("fetch", "-q", "origin", lost)
    said = host.pushed("refs/heads/main", lost, after, forced=True)
    event = json.loads(Path(said["GITHUB_EVENT_PATH"]).read_text())
    said |= host.event(event | {"repository": {"default_branch": "trunk"}})
    answer = host.check(said)
    assert (answer.code, answer.errors) == (0, [])


@pytest.mark.parametrize(
    ("url", "forks", "code"),
    [
        ("https://bitbucket.invalid/Mallory/project.git", ["mallory", "Mallory/project"], 3),
        ("git@bitbucket.invalid:mallory/project.git", ["mallory", "Mallory/project"], 3),
        ("https://bitbucket.invalid/team/project.git", ["mallory", "mallory/project"], 0),
        ("git@bitbucket.invalid:team/project.git", ["git", "project", "team/mobile/project"], 0),
        ("https://gitlab.invalid/team/project.git", ["team/project-fork", "team/mobile/project"], 0),
        ("https://gitlab.invalid/team/mobile/project.git", ["team/mobile/project", "mobile"], 3),
    ],
)
def test_a_fork_is_not_taken_for_the_repository_of_the_base(
    host: Host, url: str, forks: list[str], code: int
) -> None:
    """Of a pull request on Bitbucket Cloud, Jenkins clones the fork as origin."""
    head = host.push("feature", GOOD)
    host.clone(head)
    host.ci.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    host.ci.git("remote", "set-url", "origin", url)
    said = {"JENKINS_URL": "http://ci.invalid", "CHANGE_ID": "1", "CHANGE_TARGET": "main"}
    for fork in forks:
        assert host.check(said | {"CHANGE_FORK": fork}).code == code


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://github.invalid/Mallory/project", 3),
        ("git@github.invalid:mallory/project.git", 3),
        ("https://github.invalid/team/project", 0),
        ("https://github.invalid/mallory/other", 0),
    ],
)
@pytest.mark.parametrize("event", ["pull_request", "pull_request_target"])
def test_a_checkout_of_a_pull_request_s_repository_is_not_taken_for_that_of_the_base(
    host: Host, event: str, url: str, code: int
) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    host.ci.git("remote", "set-url", "origin", url)
    said = host.pull(head, head) | {"GITHUB_EVENT_NAME": event}
    document = json.loads(Path(said["GITHUB_EVENT_PATH"]).read_text())
    document["pull_request"]["base"]["repo"] = {"full_name": "team/project"}
    document["pull_request"]["head"]["repo"] = {"full_name": "mallory/project"}
    Path(said["GITHUB_EVENT_PATH"]).write_text(json.dumps(document))
    assert host.check(said).code == code


def test_a_git_of_the_checkout_is_refused(host: Host) -> None:
    head = host.push("feature", {"bin/git": "#!/bin/sh\n"})
    host.clone(head)
    (host.ci.path / "bin" / "git").chmod(0o755)
    for folder in ("bin", str(host.ci.path / "bin")):
        said = host.pull(head, head) | {"PATH": f"{folder}:{host.ci.env['PATH']}"}
        answer = host.check(said)
        assert (answer.code, "PATH" in answer.error["message"]) == (2, True)


def test_what_a_forced_push_took_from_an_open_branch_is_said_to_be_unknown(host: Host) -> None:
    host.push("feature", GOOD)
    after = host.push("feature", {"b.txt": "x\n"})
    host.clone(after)
    answer = host.check(host.pushed("refs/heads/feature", "f" * 40, after, forced=True))
    assert (answer.code, "ffffffffffff" in answer.report["warnings"][0]) == (0, True)


@pytest.mark.parametrize(("listed", "code"), [("refs/tags/v*", 3), ("refs/heads/main", 0)])
def test_a_listed_tag_that_had_a_commit_which_is_not_here_is_undecided(
    host: Host, listed: str, code: int
) -> None:
    host.main = host.land({"patchgate.toml": POLICY + f'[push]\nprotected_refs = ["{listed}"]\n'})
    host.clone(host.main)
    assert host.check(host.pushed("refs/tags/v1", "f" * 40, host.main)).code == code


def test_a_listed_tag_that_becomes_an_annotated_one_is_moved(host: Host) -> None:
    host.main = host.land({"patchgate.toml": POLICY + '[push]\nprotected_refs = ["refs/tags/v*"]\n'})
    host.dev.git("tag", "-a", "-m", "one", "v1", host.main)
    host.dev.git("push", "-q", "origin", "refs/tags/v1")
    host.clone(host.main)
    tag = host.dev.ask("rev-parse", "v1")
    for before, after, errors in ((host.main, tag, ["ref-forced"]), ("0" * 40, tag, [])):
        said = host.pushed("refs/tags/v1", before, after) | {"GITHUB_SHA": host.main}
        assert host.check(said).errors == errors


def test_a_listed_tag_whose_own_object_is_not_here_is_judged_by_its_commit(host: Host) -> None:
    """actions/checkout fetches the commit of an annotated tag, and not always the tag."""
    host.main = host.land({"patchgate.toml": POLICY + '[push]\nprotected_refs = ["refs/tags/v*"]\n'})
    bad = host.push("feature", BAD)
    host.clone(bad)
    for before, code in (("0" * 40, 1), (host.main, 1), (bad, 3)):
        said = host.pushed("refs/tags/v1", before, "f" * 40) | {"GITHUB_SHA": bad}
        answer = host.check(said)
        assert (answer.code, "deny-prefix" in answer.errors if code < 3 else True) == (code, True)


def test_a_tag_is_not_moved_while_the_policy_that_lists_it_cannot_be_read(host: Host) -> None:
    owned = '[[owners]]\npaths = ["infra/**"]\n[push]\nprotected_refs = ["refs/tags/v*"]\n'
    old = host.land({"patchgate.toml": POLICY + owned})
    new = host.land({"b.txt": "b\n"})
    host.land({"patchgate.toml": "["})
    host.clone(new)
    assert host.check(host.pushed("refs/tags/v1", old, new)).errors == ["ref-forced"]


def test_a_submodule_of_what_ci_builds_is_not_checked_in_its_place(host: Host) -> None:
    host.clone(host.main)
    host.ci.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(host.dev.path), "svc")
    answer = host.ci.cli("check", "--ci", cwd=host.ci.path / "svc", JENKINS_URL="http://ci.invalid")
    assert (answer.code, "submodule" in answer.err) == (2, True)


@pytest.mark.parametrize("before", ["0" * 40, None])
def test_a_push_to_another_branch_is_compared_with_the_default_branch(host: Host, before: str | None) -> None:
    loose = host.push("feature", {"patchgate.toml": LOOSE})
    bad = host.push("feature", BAD, onto=loose)
    host.clone(bad)
    answer = host.check(host.pushed("refs/heads/feature", before or loose, bad))
    assert (judged(answer)[:2], "deny-prefix" in answer.errors) == ([loose, bad], True)


def test_a_push_to_a_protected_branch_is_judged_by_what_it_had_before(host: Host) -> None:
    old = host.push("v1", {"patchgate.toml": '[policy]\ndeny_prefixes = ["docs"]\n'})
    after = host.push("v1", BAD, onto=old)
    host.clone(after)
    said = host.pushed("refs/heads/v1", old, after) | {"GITHUB_REF_PROTECTED": "true"}
    assert host.check(said).code == 0


def test_a_new_branch_that_is_protected_is_compared_with_the_default_branch(host: Host) -> None:
    bad = host.push("v1", BAD, onto=host.push("v1", {"patchgate.toml": LOOSE}))
    host.clone(bad)
    said = host.pushed("refs/heads/v1", "0" * 40, bad) | {"GITHUB_REF_PROTECTED": "true"}
    assert "deny-prefix" in host.check(said).errors


def test_a_tag_is_judged_by_what_the_default_branch_lacks(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.dev.git("push", "-q", "origin", f"{bad}:refs/tags/v1")
    host.clone(bad)
    assert host.check(host.pushed("refs/tags/v1", "0" * 40, bad)).errors == ["deny-prefix"]
    host.clone(host.main)
    answer = host.check(host.pushed("refs/tags/v0", "0" * 40, host.main))
    assert (answer.code, answer.changes) == (0, [])
    assert any("the range is empty" in text for text in answer.report["warnings"])


def test_a_schedule_judges_the_newest_change_of_the_branch(host: Host) -> None:
    host.land(GOOD)
    bad = host.push("feature", BAD)
    host.dev.git("merge", "-q", "--no-ff", "-m", "Merge", bad)
    host.dev.git("push", "-q", "origin", "main")
    after = host.dev.head()
    host.clone(after)
    answer = host.check(host.rerun(after))
    assert (answer.errors, judged(answer)) == (["deny-prefix"], [bad, after])
    note = "this run has no push: only the newest change of main was checked"
    assert answer.report["warnings"][0] == note


def test_a_run_by_hand_of_a_commit_that_its_branch_lacks_is_judged_as_a_proposal(host: Host) -> None:
    loose = host.push("feature", {"patchgate.toml": LOOSE})
    bad = host.push("feature", BAD, onto=loose)
    good = host.push("feature", GOOD, onto=bad)
    for commit in (bad, good):
        host.clone(commit)
        answer = host.check(host.rerun(commit))
        assert (answer.code, "deny-prefix" in answer.errors) == (1, True)
        assert "is not on main" in answer.report["warnings"][0]


def test_the_first_push_of_a_project_is_judged_commit_by_commit(host: Host) -> None:
    after = host.land(BAD)
    host.clone(after)
    answer = host.check(host.pushed("refs/heads/main", "0" * 40, after))
    assert (answer.errors, judged(answer)) == (["deny-prefix"], [host.main, after])


def test_without_an_engine_the_default_branch_of_origin_is_the_base(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.clone(bad)
    unknown = host.check({})
    assert (unknown.code, unknown.error["hint"]) == (
        3,
        "git fetch origin '+refs/heads/*:refs/remotes/origin/*' && git remote set-head origin --auto",
    )
    # A branch HEAD that somebody pushed is no symbolic ref.
    host.ci.git("update-ref", "refs/remotes/origin/HEAD", bad)
    assert host.check({}).code == 3
    host.ci.git("update-ref", "-d", "refs/remotes/origin/HEAD")
    host.ci.git("remote", "set-head", "origin", "--auto")
    assert host.check({}).errors == ["deny-prefix"]


def test_a_forced_push_that_only_goes_back_is_refused_as_on_a_server(host: Host) -> None:
    lost = host.land(GOOD)
    host.dev.git("push", "-q", "-f", "origin", f"{host.main}:main")
    host.clone(host.main)
    host.ci.git("fetch", "-q", "origin", lost)
    answer = host.check(host.pushed("refs/heads/main", lost, host.main, forced=True))
    assert (answer.code, answer.errors) == (1, ["ref-forced"])
    assert answer.changes[0]["source"]["ref"] == "refs/heads/main"


@pytest.mark.parametrize("source", ["parent_pipeline", "webide"])
def test_a_pipeline_that_a_push_started_in_another_way_judges_all_of_the_push(
    host: Host, source: str
) -> None:
    bad = host.land(BAD)
    last = host.land(GOOD)
    host.clone(last)
    variables = {
        "GITLAB_CI": "true",
        "CI_COMMIT_SHA": last,
        "CI_DEFAULT_BRANCH": "main",
        "CI_COMMIT_BRANCH": "main",
        "CI_COMMIT_BEFORE_SHA": host.main,
        "CI_PIPELINE_SOURCE": source,
    }
    answer = host.check(variables)
    assert (answer.code, answer.errors, judged(answer)) == (1, ["deny-prefix"], [bad, last])
    assert judged(host.check(variables | {"CI_COMMIT_BEFORE_SHA": "0" * 40})) == [last]


def test_where_the_base_has_a_broken_policy_its_repair_alone_is_accepted(host: Host) -> None:
    host.main = host.land({"patchgate.toml": "[polizei]\n"})
    other, repair = host.push("other", GOOD), host.push("repair", {"patchgate.toml": POLICY})
    for head, code in ((other, 3), (repair, 0)):
        merge = host.merge(head)
        host.clone(merge)
        assert host.check(host.pull(head, merge)).code == code


def test_what_an_earlier_build_left_in_the_clone_is_not_trusted(host: Host) -> None:
    from patchgate.policy.config import parse
    from patchgate.policy.tree_policies import PolicyCache

    bad = host.push("feature", BAD)
    host.clone(bad)
    PolicyCache(str(host.ci.path / ".git")).store(
        POLICY.encode(), "patchgate.toml", parse(LOOSE.encode(), "patchgate.toml")
    )
    assert host.check(host.pull(bad, bad)).errors == ["deny-prefix"]


def test_an_annotated_tag_may_be_named_by_the_tag_itself(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.dev.git("tag", "-a", "-m", "Version 1", "v1", bad)
    host.dev.git("push", "-q", "origin", "v1")
    host.clone(bad)
    tag = host.dev.ask("rev-parse", "v1")
    assert tag != bad
    assert host.check(host.pushed("refs/tags/v1", "0" * 40, tag)).errors == ["deny-prefix"]


# --- hostile environments


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device", "large", "deep", "text"])
def test_a_strange_event_file_is_never_accepted(host: Host, kind: str) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    variables = host.pull(head, head)
    place = host.ci.path.parent / kind
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind != "missing":
        texts = {"large": '"' + "x" * (10 << 20) + '"', "deep": "[" * 100_000, "text": "base: main"}
        place.write_text(texts[kind])
    answer = host.check(variables | {"GITHUB_EVENT_PATH": str(place)})
    assert answer.code == 2
    assert answer.error["message"].isprintable()


HOSTILE = (
    "",
    "-x",
    "--help",
    "main\nevil",
    "../../x",
    "main..HEAD",
    "\x1b[2J",
    "HEAD",
    "@",
    "0" * 40,
    "a" * 5000,
)


@pytest.mark.parametrize("name", ["GITHUB_BASE_REF", "GITHUB_SHA", "GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH"])
def test_a_hostile_variable_is_never_accepted(host: Host, name: str) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    for value in HOSTILE:
        answer = host.check(host.pull(head, head) | {name: value})
        assert answer.code in {2, 3}
        assert answer.error["message"].isprintable()


def test_on_github_no_verdict_is_an_annotation_on_one_line(host: Host) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    answer = host.check(host.pull(head, head, GITHUB_BASE_REF="a\n::set-output x"), form="")
    assert (answer.code, answer.out.count("\n")) == (2, 1)
    assert answer.out.startswith("::error title=undecided::GitHub Actions: GITHUB_BASE_REF is not")


# --- arguments and outputs


@pytest.mark.parametrize(
    "other",
    [
        "HEAD",
        "--staged",
        "--worktree",
        "--all",
        "--patch=x",
        "--edits=x",
        "--base=HEAD",
        "--policy-from=HEAD",
    ],
)
def test_ci_is_combined_with_no_other_source(tmp_path: Path, other: str) -> None:
    assert Repo.create(tmp_path).cli("check", "--ci", other).code == 2


def test_on_github_the_format_and_the_summary_are_those_of_the_engine(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.clone(bad)
    summary = host.ci.path.parent / "summary.md"
    summary.write_text("before\n")
    variables = host.pull(bad, bad, GITHUB_STEP_SUMMARY=str(summary))
    answer = host.check(variables, form="")
    assert answer.out.startswith("::error title=deny-prefix,file=runs/record::")
    assert summary.read_text().startswith("before\n### patchgate: rejected\n")
    assert host.check(variables, form="concise").out.startswith("runs/record: error")
    # An approval without a signature would not count here.
    assert '--reason "..." --sign\n' in host.check(variables, form="full").out
    assert host.check(variables | {"GITHUB_STEP_SUMMARY": "/nowhere/x"}).code == 1


def test_one_run_writes_several_reports(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.clone(bad)
    host.ci.git("remote", "set-head", "origin", "--auto")
    outputs = ("--output-file", "sarif=a.sarif", "--output-file", "gitlab=b.json", "--output-file", "full=c")
    answer = host.check({}, *outputs, form="concise")
    assert (answer.code, answer.out.splitlines()[-1].partition(":")[0]) == (1, "rejected")
    assert json.loads((host.ci.path / "a.sarif").read_text())["runs"][0]["results"][0]["level"] == "error"
    assert json.loads((host.ci.path / "b.json").read_text())[0]["check_name"] == "deny-prefix"
    assert "rejected: 1 error" in (host.ci.path / "c").read_text()


def test_a_report_that_cannot_be_written_is_a_warning_and_no_other_verdict(host: Host) -> None:
    head = host.push("feature", GOOD)
    host.clone(head)
    host.ci.git("remote", "set-head", "origin", "--auto")
    answer = host.check({}, "--output-file", "sarif=nowhere/a.sarif")
    assert (answer.code, answer.verdict) == (0, "accepted")
    assert "warning: " in answer.err
    assert "could not be written" in answer.err


STORY = "".join(f"line {number} of the record\n" for number in range(40))


def smuggled(dev: Repo, target: str, *, deletes: bool, swapped: bool = False) -> str:
    """Change a file of main by clean merges alone, with a rename that git follows because of a copy.

    Returns the last merge: the history chose what it starts from, and no commit changed the file.
    """
    main = dev.head()
    dev.git("checkout", "-q", "--orphan", "copy")
    dev.git("rm", "-rfq", ".")
    copy = dev.commit({"lib/copy": STORY}, "Add a copy")
    dev.git("checkout", "-q", "-b", "side")
    if deletes:
        (dev.path / "lib/copy").unlink()
        side = dev.commit({"other": "x\n"}, "Delete the copy")
    else:
        side = dev.commit({"lib/copy": STORY.replace("line 7 ", "EVIL ")}, "Edit the copy")
    dev.git("checkout", "-q", "--detach", main)
    dev.git("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "Merge", copy)
    (dev.path / "lib/copy").unlink()
    gone = dev.commit(message="Remove the copy")
    first, second = (side, gone) if swapped else (gone, side)
    dev.git("checkout", "-q", "--detach", first)
    dev.try_git("merge", "-q", "--no-commit", "--no-ff", second)
    if deletes:
        (dev.path / target).unlink(missing_ok=True)
    dev.git("add", "-A")
    dev.git("commit", "-q", "--no-verify", "-m", "Merge 2")
    made = dev.head()
    dev.git("checkout", "-q", "main")
    return made


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("deletes", [False, True])
def test_no_merge_carries_a_change_to_a_denied_path(host: Host, deletes: bool, swapped: bool) -> None:
    host.dev.commit({"runs/record": STORY})
    host.dev.git("push", "-q", "origin", "main")
    bad = smuggled(host.dev, "runs/record", deletes=deletes, swapped=swapped)
    host.dev.git("push", "-q", "-f", "origin", f"{bad}:refs/heads/feature")
    host.clone(bad)
    answer = host.check(host.pull(bad, bad))
    assert (answer.code, answer.errors) == (1, ["deny-prefix"])
    (refused,) = [change for change in answer.changes if change["verdict"] == "rejected"]
    assert (refused["commit"], refused["files"][0]["path"]) == (bad, "runs/record")
    assert host.dev.check(bad, "--policy-from", "main").errors == ["deny-prefix"]
    assert host.server.cli("install", "--server").code == 0
    pushed = host.dev.try_git("push", "--no-verify", "origin", f"{bad}:refs/heads/main")
    assert (pushed.returncode, b"deny-prefix" in pushed.stderr) == (1, True)


def test_a_tracked_folder_is_not_the_remote(host: Host) -> None:
    """Where there is no remote of that name, `git fetch origin` reads the folder."""
    head = host.push("feature", GOOD)
    host.clone(head)
    host.ci.git("clone", "-q", "--bare", f"file://{host.server.path}", "origin")
    host.ci.git("remote", "remove", "origin")
    host.ci.git("fetch", "-q", "origin", HEADS)
    pull = host.pull(head, head)
    assert host.check(pull).code == 3
    host.ci.git("config", "remote.origin.url", "")
    assert host.check(pull).code == 3
    host.ci.git("config", "remote.origin.url", f"file://{host.server.path}")
    assert host.check(pull).code == 0


@pytest.mark.parametrize("settings", [{}, {"core.bare": "false", "core.worktree": "."}])
def test_a_head_that_came_without_a_repository_is_none_itself(host: Host, settings: dict[str, str]) -> None:
    """In an archive, git takes files that are laid out as those of a repository for one."""
    head, ci = host.push("feature", GOOD), host.ci
    host.dev.git("clone", "-q", "--bare", f"file://{host.server.path}", str(ci.path))
    ci.git("fetch", "-q", "origin", HEADS)
    ci.git("remote", "set-head", "origin", "--auto")
    (ci.path / "HEAD").write_text(head + "\n")
    for key, value in settings.items():
        ci.git("config", key, value)
    assert host.check({}).code == 3


def moved_into_a_denied_folder(host: Host) -> str:
    """Let main move a file into a denied folder; give a head of before that edits the old file."""
    host.dev.commit({"ci/build": STORY})
    host.dev.git("push", "-q", "origin", "main")
    head = host.push("stale", {"ci/build": STORY.replace("line 7 ", "EVIL ")})
    (host.dev.path / "runs").mkdir()
    host.dev.git("mv", "ci/build", "runs/build")
    host.main = host.land({})
    return head


def test_the_merge_that_the_host_will_make_is_judged_before_it_is_made(host: Host) -> None:
    head = moved_into_a_denied_folder(host)
    host.clone(head)
    answer = host.check(host.pull(head, head))
    assert (answer.code, answer.errors) == (1, ["deny-prefix"])
    assert answer.changes[-1]["source"]["kind"] == "range"
    host.clone(host.merge(head))
    assert host.check(host.pull(head, host.ci.head())).errors == ["deny-prefix"]


def test_a_stale_head_that_carries_nothing_is_accepted(host: Host) -> None:
    head = host.push("stale", GOOD)
    host.main = host.land({"b.txt": "b\n"})
    host.clone(head)
    answer = host.check(host.pull(head, head))
    assert (answer.code, judged(answer)) == (0, [head])


@pytest.mark.parametrize(
    ("policy", "target", "added", "rule"),
    [
        (POLICY, "src/notes", "key = 'AKIA" + "QWERTYUIOPASDFGH'", "secret"),
        ('[policy]\ndeny_classes = ["lock"]\n', "uv.lock", "more", "deny-class"),
        ('[policy]\ndeny_suffixes = [".pem"]\n', "keys/a.pem", "more", "deny-suffix"),
    ],
)
def test_what_git_carries_to_another_path_is_judged_there_in_full(
    host: Host, policy: str, target: str, added: str, rule: str
) -> None:
    """The content of a control file may be anything; under another name it may not."""
    dev = host.dev
    dev.commit({"patchgate.toml": policy})
    dev.commit({target: STORY})
    dev.git("push", "-q", "origin", "main")
    main = dev.head()
    dev.git("checkout", "-q", "--orphan", "copy")
    dev.git("rm", "-rfq", ".")
    dev.commit({".patchgate/notes": STORY}, "Add a copy")
    dev.git("checkout", "-q", "-b", "side")
    side = dev.commit({".patchgate/notes": STORY + added + "\n"}, "Edit the copy")
    dev.git("checkout", "-q", "--detach", main)
    dev.git("merge", "-q", "--no-ff", "--allow-unrelated-histories", "-m", "Merge", "copy")
    (dev.path / ".patchgate/notes").unlink()
    dev.commit(message="Remove the copy")
    dev.git("merge", "-q", "--no-ff", "-m", "Merge 2", side)
    bad = dev.head()
    assert added in (dev.path / target).read_text()
    dev.git("checkout", "-q", "main")
    dev.git("push", "-q", "-f", "origin", f"{bad}:refs/heads/feature")
    host.clone(bad)
    answer = host.check(host.pull(bad, bad))
    assert answer.code == 1
    refused = [found for change in answer.changes if change["commit"] == bad for found in change["findings"]]
    assert (rule, target) in {(found["rule"], found["path"]) for found in refused}


def test_what_the_base_has_already_is_refused_in_no_merge(host: Host) -> None:
    """Main reverts a denied file; a branch that had merged it goes on: two merge bases have two contents.

    A host that begins with one of them may bring the denied change again: only a merge that is there says it.
    """
    dev = host.dev
    first = dev.commit({"runs/record": "1\n"})
    dev.git("checkout", "-q", "-b", "long")
    dev.commit({"f1": "x\n"})
    dev.git("checkout", "-q", "main")
    dev.commit({"runs/record": "2\n"})
    dev.git("checkout", "-q", "long")
    dev.git("merge", "-q", "--no-edit", "main")
    dev.git("checkout", "-q", "main")
    dev.git("merge", "-q", "--no-ff", "--no-edit", "long~1")
    dev.commit({"runs/record": "1\n"})
    dev.git("push", "-q", "origin", "main")
    assert dev.ask("rev-parse", f"{first}:runs/record") == dev.ask("rev-parse", "main:runs/record")
    head = host.push("more", {"f2": "x\n"}, onto="long")
    host.clone(head)
    assert host.check(host.pull(head, head)).code == 3
    host.clone(host.merge(head))
    assert host.check(host.pull(head, host.ci.head())).code == 0


def test_a_base_that_is_a_symbolic_ref_is_undecided(host: Host) -> None:
    bad = host.push("feature", BAD)
    host.clone(bad)
    host.ci.git("symbolic-ref", "refs/remotes/origin/main", "refs/remotes/origin/feature")
    answer = host.check(host.pull(bad, bad))
    assert (answer.code, "symbolic ref" in answer.error["message"]) == (3, True)


def test_no_report_is_written_through_a_symlinked_folder_of_the_change(host: Host, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    host.dev.link("reports", "../outside")
    bad = host.push("feature", BAD)
    host.clone(bad)
    for place in ("reports/a.sarif", str(host.ci.path / "reports/a.sarif")):
        answer = host.check(host.pull(bad, bad), "--output-file", f"sarif={place}")
        assert (answer.code, list(outside.iterdir())) == (1, [])
        assert "could not be written" in answer.err
    assert host.check(host.pull(bad, bad), "--output-file", f"sarif={outside / 'b.sarif'}").code == 1
    assert [file.name for file in outside.iterdir()] == ["b.sarif"]


def test_no_way_up_again_leads_a_report_out_of_the_working_tree(host: Host, tmp_path: Path) -> None:
    (tmp_path / "outside/in").mkdir(parents=True)
    host.dev.link("reports", "../outside/in")
    (host.dev.path / "kept").mkdir()
    host.dev.link("again", "kept")
    bad = host.push("feature", BAD | {"kept/a": "x\n"})
    host.clone(bad)
    (tmp_path / "alias").symlink_to(host.ci.path)
    up = host.check(host.pull(bad, bad), "--output-file", "sarif=reports/../a.sarif")
    assert up.code == 1
    assert (host.ci.path / "a.sarif").exists()
    for place in ("again/b.sarif", f"{tmp_path}/alias/reports/b.sarif", "reports/b.sarif", ".git/b.sarif"):
        answer = host.check(host.pull(bad, bad), "--output-file", f"sarif={place}")
        assert (answer.code, "could not be written" in answer.err) == (1, True)
    made = [*tmp_path.rglob("outside/**/*.sarif"), *host.ci.path.rglob("b.sarif")]
    assert made == []


@pytest.mark.parametrize("value", ["sarif", "sarif=", "=a", "yaml=a", "a.sarif", "sarif=a\0b"])
def test_an_output_file_names_a_format_and_a_file(tmp_path: Path, value: str) -> None:
    assert Repo.create(tmp_path).cli("check", "--output-file", value).code == 2


def test_the_branch_in_which_a_change_lands_is_passed_on(host: Host) -> None:
    from patchgate.check.ci_environment import read_event
    from patchgate.check.ci_event import CiEvent, EventKind
    from patchgate.check.ci_range import CiPush, CiRange, find_ranges
    from patchgate.git.repository import open_repository

    head = host.push("feature", GOOD)
    host.clone(head)
    repository = open_repository(host.ci.env, str(host.ci.path))
    pull = host.pull(head, head)
    event = read_event(pull, Path(pull["GITHUB_EVENT_PATH"]).read_bytes())
    (found,) = find_ranges(repository, event)
    assert isinstance(found, CiRange)
    assert (found.target, found.policy_from) == ("refs/heads/main", host.main)
    assert found.policy_name == "refs/remotes/origin/main"
    push = CiEvent("x", EventKind.PUSH, branch="v1", claimed=host.main, default="main", is_protected=True)
    (moved,) = find_ranges(repository, push)
    assert isinstance(moved, CiPush)
    assert (moved.update.ref, moved.base) == ("refs/heads/v1", host.main)


def test_an_approval_counts_for_the_branch_that_the_engine_names(tmp_path: Path) -> None:
    team = Team.make(tmp_path, people=("alice",))
    before = team.head()
    team.dev.git("update-ref", "refs/remotes/origin/v1", before)
    head = team.dev.policy(GOVERNED + "[content]\nsecrets = false\n")
    azure = {"TF_BUILD": "True", "BUILD_REASON": "PullRequest", "BUILD_SOURCEVERSION": head}
    azure |= {"BUILD_SOURCEBRANCH": "refs/pull/1/merge", "SYSTEM_PULLREQUEST_TARGETBRANCH": "main"}
    assert team.dev.check("--ci", cwd=team.dev.path, **azure).errors == ["owner-approval-missing"]
    team.approve("alice")
    assert team.dev.check("--ci", cwd=team.dev.path, **azure).verdict == "accepted"
    other = azure | {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/v1"}
    assert team.dev.check("--ci", cwd=team.dev.path, **other).errors == ["owner-approval-missing"]
    pushed = {"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": "push", "CI_COMMIT_SHA": head}
    pushed |= {"CI_DEFAULT_BRANCH": "main", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_BEFORE_SHA": before}
    assert team.dev.check("--ci", cwd=team.dev.path, **pushed).verdict == "accepted"


@pytest.mark.parametrize("command", ["##[add-mask]", "##vso[task.complete]", "##teamcity[x]"])
def test_no_error_on_standard_error_is_a_command_of_a_build_log(host: Host, command: str) -> None:
    answer = host.ci.at(host.dev.path).cli("check", command, form="")
    assert (answer.code, command in answer.err) == (2, False)


@pytest.mark.parametrize("command", ["##[add-mask]", "##vso[task.complete]", "##teamcity[x]"])
def test_no_name_of_a_file_is_a_command_of_a_build_log(host: Host, command: str) -> None:
    host.dev.git("checkout", "-q", "-B", "feature")
    bad = host.push("feature", {f"runs/{command}": "x\n"})
    host.clone(bad)
    answer = host.check(host.pull(bad, bad), form="github")
    assert (answer.code, "::error" in answer.out, command in answer.out) == (1, True, False)


def test_no_cache_of_components_is_trusted_either(host: Host) -> None:
    contract = '{"component": "a", "version": 1}\n'
    declared = POLICY + '[components.a]\ncontract = "a.json"\ntests = ["t/**"]\nimplementation = ["s/**"]\n'
    host.main = host.land({"patchgate.toml": declared})
    bad = host.push("feature", {"a.json": contract})
    host.clone(bad)
    assert "contract-invalid" in host.check(host.pull(bad, bad)).rules
    assert not (host.ci.path / ".git/patchgate/contracts").exists()


PROTECTING = '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/v1"]\n'


def for_v1(host: Host, head: str) -> dict[str, str]:
    pull = {"base": {"ref": "v1", "sha": host.dev.ask("rev-parse", "v1")}, "head": {"ref": "x", "sha": head}}
    document = {"pull_request": pull, "repository": {"default_branch": "main"}}
    changed = {"GITHUB_BASE_REF": "v1", "GITHUB_REF_PROTECTED": "true"}
    return host.pull(head, head) | host.event(document) | changed


def test_a_protected_branch_without_a_policy_is_judged_by_the_default_branch(host: Host) -> None:
    """So does a server: the branch is older than the policy."""
    dev = host.dev
    dev.git("checkout", "-q", "--orphan", "v1")
    dev.git("rm", "-rfq", "--cached", ".")
    for name in dev.path.iterdir():
        if name.name != ".git":
            shutil.rmtree(name) if name.is_dir() else name.unlink()
    dev.commit({"a.txt": "a\n"})
    dev.git("push", "-q", "origin", "v1")
    dev.git("checkout", "-q", "main")
    host.main = host.land({"patchgate.toml": POLICY + PROTECTING})
    good = host.push("good", GOOD, onto="v1")
    bad = host.push("bad", BAD, onto="v1")
    host.clone(good)
    assert host.check(for_v1(host, good)).code == 0
    host.clone(bad)
    answer = host.check(for_v1(host, bad))
    assert (answer.code, answer.errors) == (1, ["deny-prefix"])
    said = host.pushed("refs/heads/v1", dev.ask("rev-parse", "v1"), bad) | {"GITHUB_REF_PROTECTED": "true"}
    assert host.check(said).errors == ["deny-prefix"]
