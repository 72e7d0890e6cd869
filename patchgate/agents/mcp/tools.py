"""The tools of the MCP server that only read: each returns the values of its typed result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from patchgate.agents.brief import DEFAULT_TOKENS, make_brief
from patchgate.agents.mcp.arguments import CallArguments, CallPlace, agent_options, digest_of, judged
from patchgate.check.effective_policy import effective_policy, explain_path
from patchgate.check.hook_decision import ApprovalSources, with_approvals
from patchgate.check.pending import check_pending
from patchgate.check.policy_lookup import trusted_options
from patchgate.components.validate import validate as validate_components
from patchgate.errors import UsageError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import printable
from patchgate.git.repository import Repository
from patchgate.patches.check_patch import check_patch
from patchgate.patches.proposals import PATCH, kind_of
from patchgate.policy.policy import Profile
from patchgate.policy.rule_details import rule_details
from patchgate.report.rule_text import list_rules, rule_text
from patchgate.report.verdict import Report
from patchgate.report.wording import safe
from patchgate.runs.run_output import state_digest
from patchgate.runs.run_record import status_now
from patchgate.runs.status import repository_status, status_text
from patchgate.verify.analysis_runner import AnalysisEnvironment
from patchgate.verify.analyze import VerifyOptions
from patchgate.verify.verification_text import render
from patchgate.verify.verify import verify as verify_trees

Tool = Callable[[CallPlace, CallArguments], dict[str, Any]]


def check(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    """Judge a patch, the staged change or the working tree."""
    patch = arguments.text("patch")
    if patch is not None:
        raw = patch.encode("utf-8")
        report, source = check_sent(place, arguments, raw)
        return {**judged(report), "digest": digest_of(report, source, raw)}
    source = arguments.text("source") or "staged"
    report = pending(place.repository, source)
    return {**judged(report), "digest": digest_of(report, source)}


def check_sent(place: CallPlace, arguments: CallArguments, raw: bytes) -> tuple[Report, str]:
    """Judge a patch in the format that was named; return the report, and the source for its digest."""
    kind = kind_of(arguments.text("input") or "")
    report = check_patch(place.repository, raw, trusted_options(place.repository), kind=kind, now=place.now)
    return report, PATCH if kind == PATCH else f"{PATCH} {kind}"


def pending(repository: Repository, source: str) -> Report:
    """Judge what is staged, or the working tree, with the approvals of this machine.

    Raises:
        UsageError: `source` is neither.
    """
    if source not in {"staged", "worktree"}:
        raise UsageError(f"there is no source {printable(source, 40)}", "staged or worktree")
    report = check_pending(repository, agent_options(repository), whole_tree=source == "worktree")
    return with_approvals(repository, report, ApprovalSources(local=True))


def validate(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    """Validate contracts and drift of components: those named, or all."""
    ids = arguments.texts("components")
    found = validate_components(place.repository, ids, everything=not ids)
    return {**judged(found.report), "contracts": found.contracts, "baselines": found.baselines}


def explain(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    """Explain a rule, or which line decides about a path; without either, list the rules."""
    rule, path = arguments.text("rule"), arguments.text("path")
    if rule is not None and path is not None:
        raise UsageError("explain takes a rule or a path, not both", "leave one out")
    if path is None:
        return {"text": list_rules() if rule is None else rule_text(rule) + rule_details(rule)}
    named = RepoPath.from_user(path)
    force = effective_policy(place.repository, trusted_options(place.repository))
    lines = [f"{named.quoted}, by {printable(force.place)}"]
    lines += [f"  {says}: {because}" for says, because in explain_path(force, named, Profile.AGENT)]
    return {"text": "\n".join(lines) + "\n"}


def verify(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    """Compare the analyses of two trees."""
    options = VerifyOptions(arguments.text("revision"), arguments.text("intent"), arguments.text("base"))
    found = verify_trees(place.repository, options, analyses(place))
    return {
        "verdict": found.status.verdict.value,
        "status": found.status.value,
        "reason": safe(found.reason),
        "next_step": None if found.next_step is None else safe(found.next_step),
        "text": render(found, color=False),
    }


def analyses(place: CallPlace) -> AnalysisEnvironment:
    """Return what analyses need from outside; nobody watches their progress."""
    return AnalysisEnvironment(
        environ=place.environ, cache=place.cache, report_progress=lambda what, seconds: None, now=time.time()
    )


def brief(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    """Write the brief for components, intents or paths."""
    made = make_brief(
        place.repository,
        arguments.texts("names"),
        max_tokens=arguments.number("max_tokens") or DEFAULT_TOKENS,
        with_research=arguments.flag("research"),
        now=place.now,
    )
    return {"tokens": made.tokens, "left_out": list(made.left_out), "text": made.text}


def status(place: CallPlace, arguments: CallArguments) -> dict[str, Any]:
    """Say where the repository stands; each run with the digest by which it is resumed."""
    found = repository_status(place.repository, place.now)
    return {
        "runs": [
            {
                "id": run.id,
                "status": status_now(run, place.now).value,
                "reason": None if run.reason is None else safe(run.reason),
                "digest": state_digest(run),
            }
            for run in found.runs
        ],
        "intents": [
            {"id": each.id, "is_active": is_alive, "reason": safe(each.reason)}
            for each, is_alive in found.intents
        ],
        "next": _safe(found.next),
        "missing": _safe(found.missing),
        "text": "\n".join(status_text(found)) + "\n",
    }


def _safe(lines: Sequence[str]) -> list[str]:
    return [safe(line) for line in lines]


TOOLS: Mapping[str, Tool] = {
    "brief": brief,
    "check": check,
    "explain": explain,
    "status": status,
    "validate": validate,
    "verify": verify,
}
"""The tools that only read, by name."""
