"""The governance gate: no change judges itself.

Decides what a change to the rules needs: to stand alone, to leave a policy that can be read, never to
remove it. How the facts were found is told in `Governance`.
"""

from __future__ import annotations

from collections.abc import Iterator

from patchgate.check.case import Case, find
from patchgate.policy.file_kinds import CONFIG_FILE, PYPROJECT_FILE
from patchgate.report.verdict import Finding, Fixer


def applies(case: Case) -> bool:
    """Tell whether the change touches a control file, or is a merge that loses the policy."""
    return bool(case.governance.controls) or case.governance.removed


def examine(case: Case) -> Iterator[Finding]:
    """Find what the change does to the rules that it may not."""
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
            "keep the file; an empty [policy] switches every rule of it off",
            side="old",
            who=Fixer.PERSON,
        )
    for mistake in facts.proposed_faults:
        key = f"{mistake.key}: " if mistake.key else ""
        yield find(
            "policy-invalid",
            f"the new policy cannot be used: {mistake.place}: {key}{mistake.message}",
            holder,
            mistake.hint or "fix that line",
            line=mistake.line,
        )
    if facts.must_be_own_commit and controls and others:
        named = ", ".join(path.quoted for path in others[:3]) + (", …" if len(others) > 3 else "")
        yield find(
            "policy-change-not-alone",
            f"{first.quoted} is a control file and changes together with {named}",
            first,
            "commit the control files by themselves, the rest after it "
            f"(git restore --staged -- {first.quoted})",
            details={"split": [controls, others]},
        )
    if facts.repaired:
        yield find(
            "policy-repaired",
            "the policy before this change could not be read; this change was judged by its own",
            holder,
            "nothing to do",
        )
