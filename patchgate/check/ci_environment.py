"""Decide from the variables of a CI engine what it builds: the base branch, the claimed base, the head.

Pure: which values exist for which event, and which of them must agree. What is here in git is compared
elsewhere (`ci_range`). No name of the head side, title or label is read. `docs/ci.md` lists each variable
with who controls it, and the engines' own pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from patchgate.check.ci_event import BRANCHES, TAGS, CiEvent, CiValues, EventKind, is_zero
from patchgate.errors import UndecidedError, UsageError
from patchgate.git.quoting import printable
from patchgate.values import replace


def read_event(variables: Mapping[str, str], document: bytes | None) -> CiEvent:
    """Read which event an engine was started by.

    Args:
        variables: the environment.
        document: the content of the file that `GITHUB_EVENT_PATH` names; None if it could not be read.

    Raises:
        UsageError: a value is missing or invalid, or the environment is that of several engines.
        UndecidedError: two sources disagree, or the pipeline runs where the base is not known.
    """
    found = [(name, read) for marker, name, read in _ENGINES if variables.get(marker)]
    if len(found) > 1:
        names = " and ".join(name for name, _ in found)
        raise UsageError(f"the environment is that of several engines: {names}", "unset the variables of one")
    for name, read in found:
        return read(CiValues(variables, name, document))
    if set(map(variables.get, _JENKINS)) != {None}:
        raise UsageError(
            "this is a build of Jenkins, which sets JENKINS_URL only where its own URL is configured",
            "set it: Manage Jenkins, System, Jenkins URL",
        )
    for needed, parts in _PARTS:
        part = next((name for name in sorted(variables) if name.startswith(parts) and variables[name]), None)
        if part is not None:
            raise UsageError(
                f"{part} is set, and {needed} is not, so it is not known which engine this is",
                f"pass on all of the engine's variables, {needed} too",
            )
    return CiEvent("git", EventKind.CLONE)


def is_github(variables: Mapping[str, str]) -> bool:
    """Return whether the engine is GitHub's or like it, with an event file and workflow commands."""
    return bool(variables.get("GITHUB_ACTIONS"))


def _pushed(event: CiEvent, before: str | None) -> CiEvent:
    """Complete the event of a push: what the branch had before (zeroes: it is new)."""
    is_new = before is not None and is_zero(before)
    return replace(event, claimed=None if is_new else before, is_new=is_new)


def _github(values: CiValues) -> CiEvent:
    """GitHub Actions, and Gitea and Forgejo: they build the head of a pull request, GitHub its merge."""
    if values.text("GITEA_ACTIONS"):
        values.engine = "Gitea Actions"
    if values.text("FORGEJO_ACTIONS"):
        values.engine = "Forgejo Actions"
    name = values.required("GITHUB_EVENT_NAME")
    built = values.oid("GITHUB_SHA") or ""
    reader = _GITHUB_EVENTS.get(name)
    if reader is None:
        known = ", ".join(_GITHUB_EVENTS)
        raise UsageError(
            f"{values.engine}: check --ci does not know the event {printable(name, 60)}",
            f"run it at one of these: {known}",
        )
    return reader(values, built)


def _github_proposal(values: CiValues, built: str) -> CiEvent:
    base = values.branch("GITHUB_BASE_REF") or ""
    said = values.said_branch("pull_request", "base", "ref") or ""
    head = values.said_oid("pull_request", "head", "sha")
    is_from_base = values.required("GITHUB_EVENT_NAME") == "pull_request_target"
    repository, origin = (
        values.said("pull_request", side, "repo", "full_name", optional=True) for side in ("base", "head")
    )
    return CiEvent(
        values.engine,
        EventKind.PROPOSAL,
        branch=values.agree("GITHUB_BASE_REF", base, "pull_request.base.ref", said),
        claimed=values.said_oid("pull_request", "base", "sha"),
        # The workflow of the base runs on the base; the pull request is fetched, and not checked out.
        checked_out=() if is_from_base else (built, head),
        head=head if is_from_base else None,
        includes=head,
        default=values.said_branch("repository", "default_branch", optional=True),
        fork=None if origin == repository else origin,
        takes_commands=True,
    )


def _github_queue(values: CiValues, built: str) -> CiEvent:
    head = values.said_oid("merge_group", "head_sha")
    return CiEvent(
        values.engine,
        EventKind.PROPOSAL,
        branch=values.said_full_branch("merge_group", "base_ref"),
        claimed=values.said_oid("merge_group", "base_sha"),
        checked_out=(values.agree("GITHUB_SHA", built, "merge_group.head_sha", head),),
        default=values.said_branch("repository", "default_branch", optional=True),
        is_queued=True,
        takes_commands=True,
    )


def _github_push(values: CiValues, built: str) -> CiEvent:
    ref = values.required("GITHUB_REF")
    values.agree("GITHUB_REF", ref, "ref", values.said("ref") or "")
    event, after = _of_ref(values, ref, built, EventKind.PUSH), values.said_oid("after")
    if event.kind is EventKind.TAG:
        # Of an annotated tag, `after` is the tag itself.
        event = replace(event, checked_out=(built, after))
        return _pushed(event, values.said("before", optional=True) and values.said_oid("before"))
    values.agree("GITHUB_SHA", built, "after", after)
    return _pushed(replace(event, is_forced=values.said_true("forced")), values.said_oid("before"))


def _github_rerun(values: CiValues, built: str) -> CiEvent:
    return _of_ref(values, values.required("GITHUB_REF"), built, EventKind.RERUN)


def _of_ref(values: CiValues, ref: str, built: str, kind: EventKind) -> CiEvent:
    """Read the event of a branch or tag that GitHub builds."""
    default = values.said_branch("repository", "default_branch", optional=True)
    event = CiEvent(values.engine, EventKind.TAG, checked_out=(built,), default=default, takes_commands=True)
    if ref.startswith(TAGS):
        return replace(event, tag=values.tag("GITHUB_REF"))
    branch = values.full_branch("GITHUB_REF")
    is_protected = values.text("GITHUB_REF_PROTECTED") == "true"
    if values.text("GITHUB_EVENT_NAME") == "schedule":
        # A schedule runs on the default branch only, and its event may not name the repository.
        default = default or branch
    return replace(
        event, kind=kind, branch=branch, is_protected=is_protected, default=default, includes=built
    )


_GITHUB_EVENTS: dict[str, Callable[[CiValues, str], CiEvent]] = {
    "pull_request": _github_proposal,
    "pull_request_target": _github_proposal,
    "merge_group": _github_queue,
    "push": _github_push,
    "schedule": _github_rerun,
    "workflow_dispatch": _github_rerun,
}


def _gitlab(values: CiValues) -> CiEvent:
    built = values.oid("CI_COMMIT_SHA") or ""
    source = values.required("CI_PIPELINE_SOURCE")
    default = values.branch("CI_DEFAULT_BRANCH")
    if source == "merge_request_event" or values.text("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        return _gitlab_proposal(values, built, default)
    if source == "external_pull_request_event":
        raise UsageError(
            "GitLab CI: check --ci does not know external pull requests", "run it where the pull request is"
        )
    event = CiEvent(values.engine, EventKind.TAG, checked_out=(built,), default=default)
    if values.text("CI_COMMIT_TAG"):
        return replace(event, tag=values.tag("CI_COMMIT_TAG"))
    # These have the commit before the push that started them, or zeroes.
    before = values.oid("CI_COMMIT_BEFORE_SHA", optional=source != "push")
    is_push = source == "push" or (source in {"parent_pipeline", "webide"} and not is_zero(before or "0"))
    event = replace(
        event,
        kind=EventKind.PUSH if is_push else EventKind.RERUN,
        includes=built,
        branch=values.branch("CI_COMMIT_BRANCH"),
        is_protected=values.text("CI_COMMIT_REF_PROTECTED") == "true",
    )
    return _pushed(event, before) if is_push else event


def _gitlab_proposal(values: CiValues, built: str, default: str | None) -> CiEvent:
    base = values.branch("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
    if values.required("CI_PROJECT_ID") != values.required("CI_MERGE_REQUEST_PROJECT_ID"):
        raise UndecidedError(
            "GitLab CI: this pipeline runs in a fork, whose branches its owner controls",
            "let a member run it in the parent project: Run pipeline, in the merge request",
        )
    kind = values.one_of("CI_MERGE_REQUEST_EVENT_TYPE", {"detached", "merged_result", "merge_train"})
    # Only the pipelines of a merge name the target's commit.
    target = values.oid("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", optional=kind == "detached")
    head = values.oid("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", optional=True)
    return CiEvent(
        values.engine,
        EventKind.PROPOSAL,
        branch=base,
        claimed=target or values.oid("CI_MERGE_REQUEST_DIFF_BASE_SHA"),
        checked_out=(built,),
        # Pipelines of the head alone build that, and name it nowhere else.
        includes=built if kind == "detached" else head,
        default=default,
        # A train's target is the entry before it, which has not landed yet.
        is_queued=kind == "merge_train",
        is_open=values.required("CI_MERGE_REQUEST_TARGET_BRANCH_PROTECTED") == "false",
    )


def _jenkins(values: CiValues) -> CiEvent:
    """Jenkins: a multibranch job, or a plain one with the git plugin's variables."""
    built = values.oid("GIT_COMMIT", optional=True)
    heads = () if built is None else (built,)
    if values.text("CHANGE_ID") or values.text("CHANGE_TARGET"):
        values.required("CHANGE_ID")
        base = values.branch("CHANGE_TARGET")
        # Jenkins may make the merge itself.
        return CiEvent(values.engine, EventKind.PROPOSAL, branch=base, fork=values.text("CHANGE_FORK"))
    if values.text("TAG_NAME"):
        return CiEvent(values.engine, EventKind.TAG, checked_out=heads, tag=values.tag("TAG_NAME"))
    name = values.branch("BRANCH_NAME", optional=True)
    plain = values.text("GIT_BRANCH") or ""
    if name is None and plain.startswith("origin/"):
        name = (values.branch("GIT_BRANCH") or "").removeprefix("origin/")
    if name is None:
        return CiEvent(values.engine, EventKind.CLONE, checked_out=heads)
    before = values.oid("GIT_PREVIOUS_COMMIT", optional=True)
    if before is None or built in (None, before):
        before = values.oid("GIT_PREVIOUS_SUCCESSFUL_COMMIT", optional=True)
    return CiEvent(
        values.engine,
        EventKind.PUSH,
        branch=name,
        # A plain job builds a commit once, and names the first of its branches (GitSCM in
        # jenkinsci/git-plugin).
        is_first_of_several=not values.text("BRANCH_NAME"),
        claimed=before,
        is_of_build=before is not None,
        checked_out=heads,
        is_protected=values.text("BRANCH_IS_PRIMARY") == "true",
    )


def _azure(values: CiValues) -> CiEvent:
    built = values.oid("BUILD_SOURCEVERSION") or ""
    reason = values.required("BUILD_REASON")
    ref = values.required("BUILD_SOURCEBRANCH")
    if reason == "PullRequest" or values.text("SYSTEM_PULLREQUEST_TARGETBRANCH"):
        head = values.oid("SYSTEM_PULLREQUEST_SOURCECOMMITID", optional=True)
        return CiEvent(
            values.engine,
            EventKind.PROPOSAL,
            branch=_azure_target(values),
            checked_out=(built,) if head is None else (built, head),
            includes=head,
        )
    event = CiEvent(values.engine, EventKind.TAG, checked_out=(built,))
    if ref.startswith(TAGS):
        return replace(event, tag=values.tag("BUILD_SOURCEBRANCH"))
    kind = EventKind.PUSH if reason in {"IndividualCI", "BatchedCI"} else EventKind.RERUN
    return replace(event, kind=kind, branch=values.full_branch("BUILD_SOURCEBRANCH"))


def _azure_target(values: CiValues) -> str | None:
    """Read the target of a pull request: in full for a repository of Azure, else the name alone."""
    name = "SYSTEM_PULLREQUEST_TARGETBRANCH"
    is_full = values.required(name).startswith(BRANCHES)
    return values.full_branch(name) if is_full else values.branch(name)


def _buildkite(values: CiValues) -> CiEvent:
    commit = values.required("BUILDKITE_COMMIT")
    # A build that a person starts may build the newest commit of a branch.
    heads = () if commit == "HEAD" else (values.oid("BUILDKITE_COMMIT") or "",)
    default = values.branch("BUILDKITE_PIPELINE_DEFAULT_BRANCH", optional=True)
    event = CiEvent(values.engine, EventKind.PROPOSAL, checked_out=heads, default=default)
    queue = values.branch("BUILDKITE_MERGE_QUEUE_BASE_BRANCH", optional=True)
    if queue is not None:
        entry = values.oid("BUILDKITE_MERGE_QUEUE_BASE_COMMIT")
        return replace(event, branch=queue, claimed=entry, is_queued=True)
    if (values.text("BUILDKITE_PULL_REQUEST") or "false") != "false":
        return replace(event, branch=values.branch("BUILDKITE_PULL_REQUEST_BASE_BRANCH"))
    if values.text("BUILDKITE_TAG"):
        return replace(event, kind=EventKind.TAG, tag=values.tag("BUILDKITE_TAG"))
    kind = EventKind.PUSH if values.text("BUILDKITE_SOURCE") == "webhook" else EventKind.RERUN
    return replace(event, kind=kind, branch=values.branch("BUILDKITE_BRANCH"))


_JENKINS = ("JENKINS_HOME", "HUDSON_HOME", "CHANGE_ID", "CHANGE_TARGET", "CHANGE_FORK")
"""What Jenkins sets in any case."""

_PARTS = (
    (
        "GITHUB_ACTIONS",
        ("GITHUB_EVENT_", "GITHUB_BASE_REF", "GITHUB_REF", "GITEA_ACTIONS", "FORGEJO_ACTIONS"),
    ),
    (
        "GITLAB_CI",
        ("CI_PIPELINE_SOURCE", "CI_MERGE_REQUEST_IID", "CI_MERGE_REQUEST_TARGET_", "CI_COMMIT_BEFORE_SHA"),
    ),
    ("TF_BUILD", ("SYSTEM_PULLREQUEST_TARGET", "BUILD_SOURCE", "BUILD_REASON")),
    (
        "BUILDKITE",
        tuple(f"BUILDKITE_{name}" for name in ("COMMIT", "BRANCH", "TAG", "PULL_", "MERGE_QUEUE_")),
    ),
)
"""What names an engine, and how names begin that none sets without it: a container may get a part of them."""

_ENGINES: tuple[tuple[str, str, Callable[[CiValues], CiEvent]], ...] = (
    ("GITHUB_ACTIONS", "GitHub Actions", _github),
    ("GITLAB_CI", "GitLab CI", _gitlab),
    ("JENKINS_URL", "Jenkins", _jenkins),
    ("TF_BUILD", "Azure Pipelines", _azure),
    ("BUILDKITE", "Buildkite", _buildkite),
)
