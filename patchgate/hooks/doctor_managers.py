"""What it means for the gate that a hook manager runs patchgate: which events reach it, and which do not.

Decides the words and the levels: an event that is handed on is fine; one without which something lands or
leaves unjudged is an error; what only native hooks see is a warning, for the push judges those commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patchgate.git.hook_managers import FRAMEWORKS
from patchgate.hooks.doctor_findings import Finding, Hook
from patchgate.report.rules import Level
from patchgate.report.wording import safe

_IDS = {
    "pre-commit": "patchgate",
    "pre-merge-commit": "patchgate",
    "commit-msg": "patchgate-commit-msg",
    "pre-push": "patchgate-pre-push",
}
# Without these something lands or leaves unjudged; the others are judged once more at the push.
_NEEDED = frozenset({"pre-commit", "pre-push"})
_NATIVE = "reference-transaction"


def is_managed(hooks: Sequence[Hook]) -> bool:
    """Tell whether a manager runs patchgate at any event, and no hook of ours is there."""
    return not any(hook.file.is_ours or hook.displaced for hook in hooks) and any(
        hook.is_through_manager for hook in hooks
    )


def managed_findings(hooks: Sequence[Hook], install: str) -> Iterator[Finding]:
    """Tell which events a manager hands on, and what is missing.

    Args:
        install: the command that puts native hooks in.
    """
    through: dict[tuple[str, str], list[str]] = {}
    for hook in hooks:
        if hook.is_through_manager and hook.managed is not None:
            through.setdefault((hook.managed.by, hook.managed.config), []).append(hook.event)
    for (by, config), events in through.items():
        what = f"{by} runs patchgate at {', '.join(events)}, by {safe(config)}; this is read, not tried"
        yield Finding(Level.NOTE, what, None, tuple(events))
    first = next(iter(through))
    for hook in hooks:
        if not hook.is_through_manager:
            yield _missing(hook, *first, install)


def _missing(hook: Hook, by: str, config: str, install: str) -> Finding:
    event = hook.event
    if event == _NATIVE:
        what = (
            f"{event}: only the native hooks see it. Without it --no-verify, rebase, cherry-pick and "
            "fast-forward are judged at the push, and not before"
        )
        return Finding(Level.WARNING, what, install, (event,))
    level = Level.ERROR if event in _NEEDED else Level.WARNING
    if hook.managed is not None and hook.managed.has_patchgate:
        what = f"{event}: {safe(hook.managed.config)} has patchgate for it, and {by} has no hook there"
        return Finding(level, what, f"{by} install --hook-type {event}", (event,))
    if by in FRAMEWORKS:
        what = f"{event}: {safe(config)} has no `id: {_IDS[event]}`, so {by} does not run patchgate there"
        return Finding(level, what, install, (event,))
    what = f"{event}: {by} does not run patchgate there; its config has no `git patchgate hook {event}`"
    return Finding(level, what, install, (event,))
