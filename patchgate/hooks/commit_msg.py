"""commit-msg: check the message of a commit, and add the trailer of the intent that binds it.

Uses the agent profile if an intent binds the commit.
"""

from __future__ import annotations

from dataclasses import replace

from patchgate.check.commit_message import check_message
from patchgate.check.hook_decision import HookDecision, decide
from patchgate.git.new_commits import current_branch
from patchgate.git.repository import Repository
from patchgate.hooks.recovery_steps import remember_shown
from patchgate.intents.worktree_intents import ScopeGate
from patchgate.report.verdict import Verdict


def judge_message(repository: Repository, file: str, *, edited: bool) -> HookDecision:
    """Check a message, as git will clean it.

    Args:
        repository: where the commit is made.
        file: the message file that git gives to commit-msg, relative to the working directory.
        edited: whether git opens an editor for this commit.

    Raises:
        PatchgateError: the message or the policy could not be read.
    """
    gate, added = ScopeGate(repository), None
    gate.touch()
    if gate.here is not None:
        from patchgate.intents.trailer import add_trailer

        added = add_trailer(repository, file, gate.here, edited=edited)
    report = check_message(repository, file, edited=edited, profile=gate.profile)
    report = replace(report, warnings=(*report.warnings, added)) if added else report
    branch = current_branch(repository) if report.verdict is not Verdict.ACCEPTED else None
    judged = decide(repository, "commit-msg", report, branch)
    remember_shown(repository, judged.report, begins=False)
    return judged
