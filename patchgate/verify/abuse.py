"""Whether a change accepts debt instead of mending it: when growth of baselines counts, and what code is.

Decides which triggers there are, and what is functional code. It looks at the whole repository: no scope
excuses a baseline (A19). While there are regressions any change of a baseline counts, also one that only
moves or removes entries; else its growth does. What growth of one file is, `growth` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

from patchgate.commands.results import Comparison
from patchgate.git.path import RepoPath
from patchgate.policy.control import is_control_by_name

WHILE_REGRESSIONS = "baseline_updated_while_regressions_present"
WITH_CODE = "baseline_changed_with_functional_code"
WITHOUT_INTENT = "baseline_updated_without_intent"
GREENED = "ci_greened_by_accepting_debt"
TRIGGERS = (WHILE_REGRESSIONS, WITH_CODE, WITHOUT_INTENT, GREENED)

_PROSE = (b".md", b".markdown", b".rst", b".txt", b".text", b".adoc", b".asciidoc", b".org", b".tex")
_PROSE_NAMES = frozenset(
    {b"readme", b"license", b"licence", b"changelog", b"changes", b"notice", b"authors", b"copying", b"news"}
)
# They end like prose, and decide what is built.
_NO_PROSE = re.compile(rb"cmakelists\.txt|(?:.*[-_])?(?:requirements|constraints)(?:[-_.].*)?\.txt")


def triggers(
    *, has_changed: bool, has_grown: bool, has_intent: bool, has_code: bool, comparison: Comparison | None
) -> tuple[str, ...]:
    """Name why a change of baselines is suspicious; nothing where nothing changed.

    Args:
        has_changed: a listed baseline is not what it was.
        has_grown: a listed baseline, or the set of suppressions, grew.
        has_intent: the work is declared.
        has_code: functional code was changed with it.
        comparison: of the two trees; None where nothing can be said of regressions.
    """
    regressed = comparison is not None and bool(comparison.new)
    greened = comparison is not None and any(
        state.failed_before and not state.fails_after for state in comparison.thresholds
    )
    said = (
        regressed and (has_changed or has_grown),
        has_grown and has_code,
        has_grown and not has_intent,
        has_grown and greened,
    )
    return tuple(trigger for trigger, is_so in zip(TRIGGERS, said, strict=True) if is_so)


def has_functional_code(
    touched: Iterable[RepoPath], baselines: Set[RepoPath], controls: Set[RepoPath]
) -> bool:
    """Tell whether a change touches anything but baselines, control files and prose.

    Args:
        touched: every file that differs between the two trees, in the whole repository.
        baselines: the listed ones.
        controls: files that are control files by what they hold.
    """
    return any(
        path not in baselines
        and path not in controls
        and not is_control_by_name(path)
        and not _is_prose(path)
        for path in touched
    )


def _is_prose(path: RepoPath) -> bool:
    name = path.name.lower()
    if _NO_PROSE.fullmatch(name):
        return False
    return name.endswith(_PROSE) or name in _PROSE_NAMES
