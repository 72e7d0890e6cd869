"""commit-msg: check the message of a commit, and add the trailers of the binding intent and of an agent.

Uses the agent profile if an intent binds the commit, or the environment says that an agent makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from patchgate.check.commit_message import check_message, policy_of_pending
from patchgate.check.hook_decision import HookDecision, decide
from patchgate.check.profiles import find_agent_variable, unknown_profile
from patchgate.git.new_commits import current_branch
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository
from patchgate.hooks.recovery_steps import remember_shown
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.policy.policy import Profile
from patchgate.report.verdict import Verdict
from patchgate.values import replace


def judge_message(
    repository: Repository, file: str, environ: Mapping[str, str], *, edited: bool
) -> HookDecision:
    """Check a message, as git will clean it.

    Args:
        repository: where the commit is made.
        file: the message file that git gives to commit-msg, relative to the working directory.
        environ: the environment of the hook.
        edited: whether git opens an editor for this commit.

    Raises:
        PatchgateError: the message or the policy could not be read.
    """
    gate = ScopeGate(repository)
    gate.touch()
    with Objects(repository) as objects:
        policy, _ = policy_of_pending(repository, objects)
    is_agents = find_agent_variable(environ, policy) is not None
    failed: list[str | None] = [unknown_profile(environ)]
    if is_agents or gate.here is not None:
        from patchgate.hooks.message_trailers import add_intent_trailer, add_profile_trailer

        if gate.here is not None:
            failed.append(add_intent_trailer(repository, file, gate.here, edited=edited))
        if is_agents:
            failed.append(add_profile_trailer(repository, file, edited=edited))
    profile = Profile.AGENT if is_agents else gate.profile
    report = check_message(repository, file, edited=edited, profile=profile)
    report = replace(report, warnings=(*report.warnings, *filter(None, failed)))
    branch = current_branch(repository) if report.verdict is not Verdict.ACCEPTED else None
    judged = decide(repository, "commit-msg", report, branch)
    remember_shown(repository, judged.report, begins=False)
    return judged
