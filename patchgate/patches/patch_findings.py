"""Faults of a patch as findings, with what a person and an agent need to mend them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from patchgate.git.path import RepoPath
from patchgate.patches.diagnosis import tell
from patchgate.patches.effect import COMMAND, Effect
from patchgate.patches.patch_line_faults import with_returns
from patchgate.patches.patch_model import Fault, Mending
from patchgate.report.rules import RULES, Stage
from patchgate.report.verdict import ChangeVerdict, Detail, Finding, Fix, Json

_MISFITS = {"hunk-mismatch", "hunk-ambiguous", "eol-mixed"}


def finding_of(fault: Fault, path: RepoPath | None = None, also: str | None = None) -> Finding:
    """Turn a fault, on a file where one is known, into a finding; `also` is a further hint for a misfit."""
    details: dict[str, Detail] = {"pattern": None, "limit": None, "actual": None, **fault.details}
    details.setdefault("patch_line", fault.line)
    where = "" if fault.line is None else f"patch line {fault.line}: "
    hint = fault.hint if also is None or fault.rule not in _MISFITS else f"{fault.hint}; {also}"
    fix = None if fault.fix is None else Fix("mechanical", *fault.fix)
    notes = tuple(line.strip() for line in tell(fault)[1:-1]) if fault.rule in _MISFITS else ()
    line = details.get("file_line")
    return Finding(
        fault.rule,
        RULES[fault.rule].level,
        where + fault.message,
        path,
        line=line if isinstance(line, int) and line > 0 else None,
        side="old",
        hint=hint,
        details=details,
        fix=fix,
        notes=notes,
    )


def with_returns_again(verdict: ChangeVerdict) -> ChangeVerdict:
    """Say that a patch was read without the CR of its lines; its fixes get one, for what was sent has it."""
    found = tuple(
        each if each.fix is None else replace(each, fix=_with_returns(each.fix)) for each in verdict.findings
    )
    if not any(each.rule == "eol-adapted" for each in found):
        message = "every line of the patch ends in CR LF; it was read without the CR"
        found = (*found, finding_of(Fault("eol-adapted", 1, message, "nothing to do")))
    return replace(verdict, findings=found)


def _with_returns(fix: Fix) -> Fix:
    mending = with_returns(Mending(fix.patch_line, fix.replace_with, fix.last_patch_line or fix.patch_line))
    return fix if mending is None else replace(fix, replace_with=mending.text)


def refused_by_git(said: Sequence[str]) -> Finding:
    """Say that git itself does not take a patch that our own reading found right."""
    last = said[-1] if said else "it gave no reason"
    return Finding(
        "git-refused",
        RULES["git-refused"].level,
        f"git apply refuses the patch: {last}",
        hint="mend what git names, or make the patch anew with git diff",
        details={"pattern": None, "limit": None, "actual": None, "stderr": list(said)},
    )


def with_words_of_git(findings: Sequence[Finding], effect: Effect | None) -> list[Finding]:
    """Add git's command line, exit code and last words to the first finding of git's check."""
    found = list(findings)
    first = next((at for at, each in enumerate(found) if each.definition.stage is Stage.GIT_CHECK), None)
    if effect is not None and first is not None:
        said: Json = {"command": COMMAND, "exit_code": effect.code, "stderr": list(effect.said)}
        found[first] = replace(found[first], details={**found[first].details, "git": said})
    return found


def wrong_effect(paths: Sequence[RepoPath]) -> Finding:
    """Say that git made something else than the patch says."""
    named = ", ".join(path.quoted for path in paths[:5]) + (", …" if len(paths) > 5 else "")
    return Finding(
        "effect-mismatch",
        RULES["effect-mismatch"].level,
        f"git makes something else of {named} than the patch says",
        paths[0],
        hint="make the patch anew from the files as they are: git diff",
        details={"pattern": None, "limit": None, "actual": paths[:100]},
    )
