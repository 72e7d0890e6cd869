"""What each CI engine's documented variables mean, and that no strange value is ever taken for an answer.

The tables follow the engines' pages: GitHub, "Events that trigger workflows"; GitLab, "Predefined CI/CD
variables"; Jenkins, "Global variable reference"; Azure, "Predefined variables"; Buildkite, "Environment
variables"; Gitea, "Actions FAQ".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.check.ci_environment import read_event
from patchgate.check.ci_event import MAX_EVENT, CiEvent, EventKind
from patchgate.check.refs import is_branch_name
from patchgate.errors import PatchgateError, UndecidedError, UsageError
from patchgate.git.quoting import is_printable

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)
ZEROES = "0" * 40
Variables = dict[str, str]

GITHUB = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_SHA": C, "GITHUB_EVENT_PATH": "/event.json"}
REPOSITORY = {"repository": {"default_branch": "trunk"}}
PULL: dict[str, Any] = {
    "pull_request": {"base": {"ref": "main", "sha": A}, "head": {"ref": "evil", "sha": B}}
}
PULL_VARIABLES = GITHUB | {
    "GITHUB_EVENT_NAME": "pull_request",
    "GITHUB_BASE_REF": "main",
    "GITHUB_HEAD_REF": "evil",
    "GITHUB_REF": "refs/pull/1/merge",
}
PUSH_VARIABLES = GITHUB | {"GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/heads/trunk"}
PUSH = {"ref": "refs/heads/trunk", "before": A, "after": C, "forced": False, **REPOSITORY}
PULL_EVENT = CiEvent(
    "GitHub Actions",
    EventKind.PROPOSAL,
    branch="main",
    claimed=A,
    checked_out=(C, B),
    includes=B,
    default="trunk",
    takes_commands=True,
)
PUSH_EVENT = CiEvent(
    "GitHub Actions",
    EventKind.PUSH,
    branch="trunk",
    claimed=A,
    checked_out=(C,),
    includes=C,
    default="trunk",
    is_forced=False,
    takes_commands=True,
)
TAG_EVENT = CiEvent(
    "GitHub Actions",
    EventKind.TAG,
    checked_out=(C,),
    claimed=A,
    default="trunk",
    tag="v1",
    takes_commands=True,
)
QUEUE = {"merge_group": {"base_ref": "refs/heads/main", "base_sha": A, "head_sha": C, "head_ref": "refs/x"}}
GITHUB_CASES: dict[str, tuple[Variables, Mapping[str, Any], CiEvent]] = {
    "a pull request": (PULL_VARIABLES, PULL | REPOSITORY, PULL_EVENT),
    "a pull request whose event does not name the default branch": (
        PULL_VARIABLES,
        PULL,
        replace(PULL_EVENT, default=None),
    ),
    "a pull request in the workflow of the base": (
        PULL_VARIABLES | {"GITHUB_EVENT_NAME": "pull_request_target", "GITHUB_REF": "refs/heads/main"},
        PULL | REPOSITORY,
        replace(PULL_EVENT, checked_out=(), head=B),
    ),
    "a pull request on Gitea, which builds its head": (
        PULL_VARIABLES | {"GITEA_ACTIONS": "true", "GITHUB_SHA": B, "GITHUB_REF": "refs/pull/1/head"},
        PULL | REPOSITORY,
        replace(PULL_EVENT, engine="Gitea Actions", checked_out=(B, B)),
    ),
    "a pull request on Forgejo, which names Gitea too": (
        PULL_VARIABLES | {"GITEA_ACTIONS": "true", "FORGEJO_ACTIONS": "true"},
        PULL | REPOSITORY,
        replace(PULL_EVENT, engine="Forgejo Actions"),
    ),
    "a merge queue": (
        GITHUB | {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF": "refs/heads/gh-readonly-queue/main/pr-1"},
        QUEUE | REPOSITORY,
        CiEvent(
            "GitHub Actions",
            EventKind.PROPOSAL,
            branch="main",
            claimed=A,
            default="trunk",
            checked_out=(C,),
            is_queued=True,
            takes_commands=True,
        ),
    ),
    "a push": (PUSH_VARIABLES, PUSH, PUSH_EVENT),
    "a forced push to a protected branch": (
        PUSH_VARIABLES | {"GITHUB_REF": "refs/heads/v1", "GITHUB_REF_PROTECTED": "true"},
        PUSH | {"ref": "refs/heads/v1", "forced": True},
        replace(PUSH_EVENT, branch="v1", is_forced=True, is_protected=True),
    ),
    "a new branch": (
        PUSH_VARIABLES | {"GITHUB_REF": "refs/heads/new"},
        PUSH | {"ref": "refs/heads/new", "before": ZEROES},
        replace(PUSH_EVENT, branch="new", claimed=None, is_new=True),
    ),
    "a tag, whose event names the tag object": (
        PUSH_VARIABLES | {"GITHUB_REF": "refs/tags/v1"},
        PUSH | {"ref": "refs/tags/v1", "after": D},
        replace(TAG_EVENT, checked_out=(C, D)),
    ),
    "a schedule, whose event names no repository": (
        GITHUB | {"GITHUB_EVENT_NAME": "schedule", "GITHUB_REF": "refs/heads/trunk"},
        {"schedule": "0 0 * * *"},
        replace(PUSH_EVENT, kind=EventKind.RERUN, claimed=None, is_forced=None),
    ),
    "a run that a person starts": (
        GITHUB | {"GITHUB_EVENT_NAME": "workflow_dispatch", "GITHUB_REF": "refs/heads/feature"},
        REPOSITORY,
        replace(PUSH_EVENT, kind=EventKind.RERUN, branch="feature", claimed=None, is_forced=None),
    ),
}

GITLAB = {"GITLAB_CI": "true", "CI_COMMIT_SHA": C, "CI_DEFAULT_BRANCH": "main", "CI_PROJECT_ID": "7"}
MERGE_REQUEST = GITLAB | {
    "CI_PIPELINE_SOURCE": "merge_request_event",
    "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "evil",
    "CI_MERGE_REQUEST_PROJECT_ID": "7",
    "CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED": "true",
    "CI_MERGE_REQUEST_EVENT_TYPE": "detached",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA": A,
    "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "",
    "CI_COMMIT_BEFORE_SHA": ZEROES,
}
MERGED = MERGE_REQUEST | {
    "CI_MERGE_REQUEST_EVENT_TYPE": "merged_result",
    "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": D,
    "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": B,
}
BRANCH = GITLAB | {
    "CI_PIPELINE_SOURCE": "push",
    "CI_COMMIT_BRANCH": "main",
    "CI_COMMIT_BEFORE_SHA": A,
    "CI_COMMIT_REF_PROTECTED": "true",
}
MERGE_EVENT = CiEvent(
    "GitLab CI", EventKind.PROPOSAL, branch="main", claimed=A, checked_out=(C,), default="main"
)
BRANCH_EVENT = replace(MERGE_EVENT, kind=EventKind.PUSH, includes=C, is_protected=True)
JENKINS = {"JENKINS_URL": "https://ci.example.com/"}
AZURE = {"TF_BUILD": "True", "BUILD_SOURCEVERSION": C, "BUILD_SOURCEBRANCH": "refs/heads/main"}
AZURE_PULL = AZURE | {
    "BUILD_REASON": "PullRequest",
    "BUILD_SOURCEBRANCH": "refs/pull/1/merge",
    "SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main",
    "SYSTEM_PULLREQUEST_SOURCECOMMITID": B,
}
AZURE_EVENT = CiEvent("Azure Pipelines", EventKind.PUSH, branch="main", checked_out=(C,))
BUILDKITE = {
    "BUILDKITE": "true",
    "BUILDKITE_COMMIT": C,
    "BUILDKITE_BRANCH": "main",
    "BUILDKITE_PULL_REQUEST": "false",
    "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "",
    "BUILDKITE_PIPELINE_DEFAULT_BRANCH": "main",
    "BUILDKITE_SOURCE": "webhook",
    "BUILDKITE_TAG": "",
}
KITE_EVENT = CiEvent("Buildkite", EventKind.PUSH, branch="main", checked_out=(C,), default="main")
OTHER_CASES: dict[str, tuple[Variables, CiEvent]] = {
    "GitLab, a merge request": (MERGE_REQUEST, replace(MERGE_EVENT, includes=C)),
    "GitLab, a merge request for a branch that is not protected": (
        MERGE_REQUEST | {"CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED": "false"},
        replace(MERGE_EVENT, includes=C, is_open=True),
    ),
    "GitLab, merged results": (MERGED, replace(MERGE_EVENT, claimed=D, includes=B)),
    "GitLab, a merge train": (
        MERGED | {"CI_MERGE_REQUEST_EVENT_TYPE": "merge_train"},
        replace(MERGE_EVENT, claimed=D, includes=B, is_queued=True),
    ),
    "GitLab, a branch": (BRANCH, BRANCH_EVENT),
    "GitLab, a new branch": (
        BRANCH | {"CI_COMMIT_BEFORE_SHA": ZEROES},
        replace(BRANCH_EVENT, claimed=None, is_new=True),
    ),
    "GitLab, a schedule": (
        BRANCH | {"CI_PIPELINE_SOURCE": "schedule", "CI_COMMIT_BEFORE_SHA": ZEROES},
        replace(BRANCH_EVENT, kind=EventKind.RERUN, claimed=None),
    ),
    "GitLab, a tag": (
        GITLAB | {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_TAG": "v1", "CI_COMMIT_BEFORE_SHA": ZEROES},
        replace(MERGE_EVENT, kind=EventKind.TAG, branch=None, claimed=None, tag="v1"),
    ),
    "Jenkins, a pull request": (
        JENKINS | {"CHANGE_ID": "1", "CHANGE_TARGET": "main", "BRANCH_NAME": "PR-1", "CHANGE_BRANCH": "evil"},
        CiEvent("Jenkins", EventKind.PROPOSAL, branch="main"),
    ),
    "Jenkins, a pull request of a fork": (
        JENKINS | {"CHANGE_ID": "1", "CHANGE_TARGET": "main", "CHANGE_FORK": "x/y"},
        CiEvent("Jenkins", EventKind.PROPOSAL, branch="main", fork="x/y"),
    ),
    "Jenkins, a branch": (
        JENKINS | {"BRANCH_NAME": "main", "BRANCH_IS_PRIMARY": "true", "GIT_PREVIOUS_SUCCESSFUL_COMMIT": A},
        CiEvent("Jenkins", EventKind.PUSH, branch="main", claimed=A, is_protected=True, is_of_build=True),
    ),
    "Jenkins, a tag": (
        JENKINS | {"BRANCH_NAME": "v1", "TAG_NAME": "v1"},
        CiEvent("Jenkins", EventKind.TAG, tag="v1"),
    ),
    "Jenkins, a plain job": (
        JENKINS | {"GIT_BRANCH": "origin/main", "GIT_COMMIT": C},
        CiEvent("Jenkins", EventKind.PUSH, branch="main", is_first_of_several=True, checked_out=(C,)),
    ),
    "Jenkins, a job without a branch": (
        JENKINS | {"GIT_BRANCH": "detached", "GIT_COMMIT": C},
        CiEvent("Jenkins", EventKind.CLONE, checked_out=(C,)),
    ),
    "Azure, a pull request": (
        AZURE_PULL,
        replace(AZURE_EVENT, kind=EventKind.PROPOSAL, checked_out=(C, B), includes=B),
    ),
    "Azure, a pull request of a GitHub repository": (
        AZURE_PULL | {"SYSTEM_PULLREQUEST_TARGETBRANCH": "main"},
        replace(AZURE_EVENT, kind=EventKind.PROPOSAL, checked_out=(C, B), includes=B),
    ),
    "Azure, a push": (AZURE | {"BUILD_REASON": "IndividualCI"}, AZURE_EVENT),
    "Azure, a schedule": (
        AZURE | {"BUILD_REASON": "Schedule"},
        replace(AZURE_EVENT, kind=EventKind.RERUN),
    ),
    "Azure, a tag": (
        AZURE | {"BUILD_REASON": "IndividualCI", "BUILD_SOURCEBRANCH": "refs/tags/v1"},
        replace(AZURE_EVENT, kind=EventKind.TAG, branch=None, tag="v1"),
    ),
    "Buildkite, a pull request": (
        BUILDKITE
        | {
            "BUILDKITE_PULL_REQUEST": "1",
            "BUILDKITE_BRANCH": "evil",
            "BUILDKITE_PULL_REQUEST_BASE_BRANCH": "main",
        },
        replace(KITE_EVENT, kind=EventKind.PROPOSAL),
    ),
    "Buildkite, a merge queue": (
        BUILDKITE
        | {
            "BUILDKITE_BRANCH": "gh-readonly-queue/x",
            "BUILDKITE_MERGE_QUEUE_BASE_BRANCH": "v1",
            "BUILDKITE_MERGE_QUEUE_BASE_COMMIT": D,
        },
        replace(KITE_EVENT, kind=EventKind.PROPOSAL, branch="v1", claimed=D, is_queued=True),
    ),
    "Buildkite, a push": (BUILDKITE, KITE_EVENT),
    "Buildkite, a schedule of the newest commit": (
        BUILDKITE | {"BUILDKITE_SOURCE": "schedule", "BUILDKITE_COMMIT": "HEAD"},
        replace(KITE_EVENT, kind=EventKind.RERUN, checked_out=()),
    ),
    "Buildkite, a tag": (
        BUILDKITE | {"BUILDKITE_TAG": "v1"},
        replace(KITE_EVENT, kind=EventKind.TAG, branch=None, tag="v1"),
    ),
    "no engine": ({}, CiEvent("git", EventKind.CLONE)),
    "an engine that is not known": ({"CI": "true", "TRAVIS": "true"}, CiEvent("git", EventKind.CLONE)),
}


def read(variables: Mapping[str, str], event: object = None) -> CiEvent:
    return read_event(variables, None if event is None else json.dumps(event).encode())


@pytest.mark.parametrize("name", GITHUB_CASES)
def test_an_event_of_github_gives_the_base_its_claim_and_the_head(name: str) -> None:
    variables, event, expected = GITHUB_CASES[name]
    assert read(variables, event) == expected


@pytest.mark.parametrize("name", OTHER_CASES)
def test_the_variables_of_an_engine_give_the_base_its_claim_and_the_head(name: str) -> None:
    variables, expected = OTHER_CASES[name]
    assert read(variables) == expected


HEAD_SIDE = {
    "GITHUB_HEAD_REF": "x",
    "GITHUB_ACTOR": "x",
    "CI_MERGE_REQUEST_TITLE": "x",
    "CI_MERGE_REQUEST_LABELS": "x",
    "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "x",
    "CI_COMMIT_REF_NAME": "x",
    "CI_COMMIT_MESSAGE": "x",
    "CHANGE_BRANCH": "x",
    "CHANGE_TITLE": "x",
    "SYSTEM_PULLREQUEST_SOURCEBRANCH": "x",
    "BUILDKITE_MESSAGE": "x",
}


@pytest.mark.parametrize("name", [*GITHUB_CASES, *OTHER_CASES])
def test_what_the_author_of_a_change_names_decides_nothing(name: str) -> None:
    variables, event = GITHUB_CASES[name][:2] if name in GITHUB_CASES else (OTHER_CASES[name][0], None)
    without = {key: value for key, value in variables.items() if key not in HEAD_SIDE}
    assert read(variables | HEAD_SIDE, event) == read(without, event)


# Which variables decide: each is missing once, and has each bad value once.
DECIDING = {
    "a pull request": ("GITHUB_EVENT_NAME", "GITHUB_SHA", "GITHUB_BASE_REF"),
    "a push": ("GITHUB_EVENT_NAME", "GITHUB_SHA", "GITHUB_REF"),
    "a merge queue": ("GITHUB_SHA",),
    "GitLab, merged results": (
        "CI_COMMIT_SHA",
        "CI_DEFAULT_BRANCH",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME",
        "CI_PROJECT_ID",
        "CI_MERGE_REQUEST_EVENT_TYPE",
    ),
    "GitLab, a merge request": ("CI_MERGE_REQUEST_DIFF_BASE_SHA",),
    "GitLab, a branch": ("CI_PIPELINE_SOURCE", "CI_COMMIT_BRANCH", "CI_COMMIT_BEFORE_SHA"),
    "Jenkins, a pull request": ("CHANGE_ID", "CHANGE_TARGET"),
    "Azure, a pull request": ("BUILD_SOURCEVERSION", "BUILD_REASON", "SYSTEM_PULLREQUEST_TARGETBRANCH"),
    "Buildkite, a pull request": ("BUILDKITE_COMMIT", "BUILDKITE_PULL_REQUEST_BASE_BRANCH"),
}


@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case, names in DECIDING.items() for name in names]
)
def test_a_deciding_variable_that_is_missing_or_empty_ends_with_a_sentence(case: str, name: str) -> None:
    variables, event = GITHUB_CASES[case][:2] if case in GITHUB_CASES else (OTHER_CASES[case][0], None)
    for changed in (variables | {name: ""}, {key: value for key, value in variables.items() if key != name}):
        with pytest.raises(PatchgateError) as raised:
            read(changed, event)
        assert raised.value.exit_code in {2, 3}
        assert raised.value.hint


BAD_NAMES = (
    "-main",
    "--upload-pack=x",
    "a..b",
    "main\nevil",
    "ma\x00in",
    "a b",
    "a~1",
    "main^",
    "main:x",
    "HEAD",
    "@",
    "@{-1}",
    "main@{1}",
    "/main",
    "main/",
    "a//b",
    ".a",
    "a/.b",
    "a.lock",
    "a.lock/b",
    "a.",
    "a*",
    "a?",
    "[a]",
    "a\\b",
    "\x1b[31m",
    "\udcff",
    "x" * 1001,
    "refs/heads/",
)


@pytest.mark.parametrize("bad", BAD_NAMES)
def test_a_base_that_is_not_the_name_of_a_branch_is_refused_in_one_line(bad: str) -> None:
    event = {"pull_request": {"base": {"ref": bad, "sha": A}, "head": {"sha": B}}}
    for variables, document in (
        (PULL_VARIABLES | {"GITHUB_BASE_REF": bad}, None if "\udcff" in bad else event),
        (MERGE_REQUEST | {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": bad}, None),
        (JENKINS | {"CHANGE_ID": "1", "CHANGE_TARGET": bad}, None),
        (AZURE_PULL | {"SYSTEM_PULLREQUEST_TARGETBRANCH": bad}, None),
        (BUILDKITE | {"BUILDKITE_PULL_REQUEST": "1", "BUILDKITE_PULL_REQUEST_BASE_BRANCH": bad}, None),
    ):
        with pytest.raises(UsageError) as raised:
            read(variables, document)
        assert raised.value.message.isprintable()


@pytest.mark.parametrize("bad", BAD_NAMES)
def test_what_is_not_the_name_of_a_tag_is_refused_in_one_line(bad: str) -> None:
    full = f"refs/tags/{bad}"
    for variables, document in (
        (PUSH_VARIABLES | {"GITHUB_REF": full}, None if "\udcff" in bad else PUSH | {"ref": full}),
        (GITLAB | {"CI_PIPELINE_SOURCE": "push", "CI_COMMIT_TAG": bad}, None),
        (JENKINS | {"TAG_NAME": bad}, None),
        (AZURE | {"BUILD_REASON": "IndividualCI", "BUILD_SOURCEBRANCH": full}, None),
        (BUILDKITE | {"BUILDKITE_TAG": bad}, None),
    ):
        with pytest.raises(UsageError) as raised:
            read(variables, document)
        assert raised.value.message.isprintable()


@pytest.mark.parametrize("bad", ["main", "HEAD", "A" * 40, "a" * 39, "a" * 41, f"{A}\n", f"-{A}", "a" * 63])
def test_a_commit_is_named_by_its_whole_id_only(bad: str) -> None:
    for variables, event in (
        (PULL_VARIABLES | {"GITHUB_SHA": bad}, PULL),
        (PULL_VARIABLES, {"pull_request": {"base": {"ref": "main", "sha": bad}, "head": {"sha": B}}}),
        (PUSH_VARIABLES, PUSH | {"before": bad}),
        (MERGE_REQUEST | {"CI_MERGE_REQUEST_DIFF_BASE_SHA": bad}, None),
    ):
        with pytest.raises(UsageError):
            read(variables, event)


DISAGREEING = {
    "another base": (PULL_VARIABLES | {"GITHUB_BASE_REF": "evil"}, PULL),
    "another ref": (PUSH_VARIABLES | {"GITHUB_REF": "refs/heads/evil"}, PUSH),
    "another commit": (PUSH_VARIABLES | {"GITHUB_SHA": D}, PUSH),
    "another head of a queue": (GITHUB_CASES["a merge queue"][0] | {"GITHUB_SHA": D}, QUEUE),
    "a pipeline of a fork": (MERGE_REQUEST | {"CI_PROJECT_ID": "8"}, None),
}


@pytest.mark.parametrize("name", DISAGREEING)
def test_where_two_sources_disagree_there_is_no_verdict(name: str) -> None:
    with pytest.raises(UndecidedError):
        read(*DISAGREEING[name])


BAD_EVENTS: dict[str, bytes | None] = {
    "no file": None,
    "empty": b"",
    "not JSON": b"base: main",
    "a list": b"[]",
    "not UTF-8": b'{"a": "\xff"}',
    "a NUL": b"{}\0",
    "too deep": b'{"a":' * 500 + b"1" + b"}" * 500,
    "10 MB": b'{"a": "' + b"x" * (10 << 20) + b'"}',
    "a key twice": json.dumps(PULL).encode()[:-1] + b", " + json.dumps(PULL).encode()[1:],
    "another type": json.dumps({"pull_request": [PULL["pull_request"]]}).encode(),
    "a number for a name": json.dumps({"pull_request": {"base": {"ref": 1, "sha": A}}}).encode(),
    "an empty head": json.dumps(
        {"pull_request": {"base": PULL["pull_request"]["base"], "head": {}}}
    ).encode(),
}


@pytest.mark.parametrize("name", BAD_EVENTS)
def test_an_event_file_that_cannot_be_used_ends_with_a_sentence(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_event(PULL_VARIABLES, BAD_EVENTS[name])
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < 200


def test_a_branch_that_is_called_like_a_full_name_is_that_branch() -> None:
    odd = "refs/heads/main"
    event = {"pull_request": {"base": {"ref": odd, "sha": A}, "head": {"sha": B}}}
    assert read(PULL_VARIABLES | {"GITHUB_BASE_REF": odd}, event).branch == odd
    assert read(MERGE_REQUEST | {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": odd}).branch == odd
    for ref in ("main", "refs/pull/1/merge", "refs/remotes/origin/main"):
        with pytest.raises(UsageError):
            read(PUSH_VARIABLES | {"GITHUB_REF": ref}, PUSH | {"ref": ref})


def test_an_event_with_as_many_commits_as_github_sends_is_read() -> None:
    person = {"name": "A U Thor", "email": "author@example.com", "username": "author"}
    commit = {"id": A, "tree_id": B, "message": "x" * 100, "author": person, "committer": person, "url": "u"}
    document = json.dumps(PUSH | {"commits": [commit] * 2048}).encode()
    assert len(document) < MAX_EVENT
    assert read_event(PUSH_VARIABLES, document) == PUSH_EVENT


def test_an_event_that_names_each_file_of_a_large_push_twice_is_read() -> None:
    commit = {"id": A, "added": [f"vendor/{number}" for number in range(30_000)], "removed": []}
    document = json.dumps(PUSH | {"commits": [commit], "head_commit": commit}).encode()
    assert read_event(PUSH_VARIABLES, document) == PUSH_EVENT


@pytest.mark.parametrize("name", ["issue_comment", "workflow_run", "pull_request_review", "x\ny", "-x"])
def test_an_event_that_does_not_say_what_it_builds_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(GITHUB | {"GITHUB_EVENT_NAME": name, "GITHUB_REF": "refs/heads/main"}, REPOSITORY)
    assert raised.value.message.isprintable()


@pytest.mark.parametrize("name", ["JENKINS_HOME", "CHANGE_TARGET", "CHANGE_FORK"])
def test_a_build_of_jenkins_that_does_not_say_so_is_refused(name: str) -> None:
    """It has no JENKINS_URL where nobody has configured it, and is no clone without an engine."""
    with pytest.raises(UsageError, match="JENKINS_URL"):
        read({name: "x"}, None)


@pytest.mark.parametrize(
    ("name", "marker"),
    [
        ("FORGEJO_ACTIONS", "GITHUB_ACTIONS"),
        ("GITHUB_BASE_REF", "GITHUB_ACTIONS"),
        ("CI_MERGE_REQUEST_IID", "GITLAB_CI"),
        ("SYSTEM_PULLREQUEST_TARGETBRANCH", "TF_BUILD"),
        ("BUILDKITE_PULL_REQUEST_BASE_BRANCH", "BUILDKITE"),
    ],
)
def test_a_part_of_an_engine_s_variables_is_no_clone_without_an_engine(name: str, marker: str) -> None:
    with pytest.raises(UsageError, match=marker):
        read({name: "x"}, None)


def test_the_environment_of_two_engines_is_refused() -> None:
    with pytest.raises(UsageError, match=r"GitHub Actions and GitLab CI"):
        read(PULL_VARIABLES | MERGE_REQUEST, PULL)


TEXT = st.text(max_size=12) | st.sampled_from([*BAD_NAMES, A, ZEROES, "main", "true", "refs/heads/main"])
NAMES = sorted(
    {name for case in GITHUB_CASES.values() for name in case[0]}.union(
        *(case[0] for case in OTHER_CASES.values())
    )
)


@given(st.sampled_from(sorted(OTHER_CASES)), st.dictionaries(st.sampled_from(NAMES), TEXT, max_size=4), TEXT)
def test_no_variable_makes_anything_but_an_event_of_valid_names_or_a_sentence(
    case: str, changed: Variables, said: str
) -> None:
    document = json.dumps(said).encode("utf-8", "surrogatepass")
    raised: PatchgateError | None = None
    event = CiEvent("none", EventKind.CLONE)
    try:
        event = read_event(OTHER_CASES[case][0] | changed, document)
    except PatchgateError as error:
        raised = error
    # Not `isprintable`: that refuses letters, too, which this Python's Unicode does not know yet.
    assert raised is None or (raised.exit_code in {2, 3} and all(map(is_printable, raised.message)))
    assert all(is_branch_name(name) for name in (event.branch, event.default) if name is not None)
    assert all(len(oid) in {40, 64} for oid in (event.claimed, *event.checked_out) if oid is not None)
