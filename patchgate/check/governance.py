"""The governance gate: how a change may change the policy.

It must be its own commit, must leave a policy that can be read, and may never remove it. `Governance` has the
facts.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.check.case import Case, find
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.policy.policy import Profile
from patchgate.report.verdict import Finding, Fixer


def applies(case: Case) -> bool:
    """Return whether the change changes a control file, or is a merge that loses or breaks the policy."""
    facts = case.governance
    return bool(facts.controls or facts.removed or facts.proposed_faults)


def examine(case: Case) -> Iterator[Finding]:
    """Find what the change may not do to the policy."""
    facts = case.governance
    controls = sorted(facts.controls)
    others = [file.path for file in case.change.files if file.path not in facts.controls]
    first = controls[0] if controls else CONFIG_FILE
    holder = next((path for path in controls if path in {CONFIG_FILE, PYPROJECT_FILE}), first)
    if facts.removed:
        yield find(
            "policy-removed",
            f"the change removes the policy ({holder.quoted})",
            holder,
            "keep the file; an empty [policy] switches off all its rules",
            side="old",
            who=Fixer.PERSON,
        )
    for mistake in facts.proposed_faults:
        key = f"{mistake.key}: " if mistake.key else ""
        yield find(
            "policy-invalid",
            f"the new policy cannot be used: {mistake.location}: {key}{mistake.message}",
            holder,
            mistake.hint or "fix that line",
            line=mistake.line,
        )
    if facts.must_be_own_commit and controls and others:
        is_agent = case.profile is Profile.AGENT
        how = (
            "have a maintainer commit the control files"
            if is_agent
            else "commit the control files separately"
        )
        named = ", ".join(path.quoted for path in others[:3]) + (", …" if len(others) > 3 else "")
        yield find(
            "policy-change-not-alone",
            f"{first.quoted} is a control file and changes together with {named}",
            first,
            f"{how} (git restore --staged -- {first.in_shell} takes it out of this commit)",
            details={"split": [others, controls] if is_agent else [controls, others]},
        )
    if facts.repaired:
        yield find(
            "policy-repaired",
            "the policy before this change could not be read; this change was judged by its own",
            holder,
            "nothing to do",
        )
