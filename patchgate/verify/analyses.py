"""Run the analyses of a tree, each in a scratch tree of its own, or take what is known of them.

Decides what a run follows from, and with that its key: the tree, the settings, the program. Each analysis
sees the tree alone, and nothing that another left there. One that writes to tracked files has analysed
something else, so it is not evaluated. What a tool says is read in `commands`; what it means, others decide.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchgate.commands.analysis import analyse, tool_of
from patchgate.commands.results import AnalysisRun, Evaluated, Result, TreeRuns
from patchgate.errors import UndecidedError
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.policy.analyses import digest_of, written
from patchgate.policy.settings import AnalysisSettings
from patchgate.verify.store import AnalysisStore, settled

if TYPE_CHECKING:
    from patchgate.ledger.masking import Masks

FORM = "patchgate.analysis-key/1"
_NAMED = 5
_PATIENCE = 300.0
_MUST_NOT_WRITE = "let it only read: leave out options that fix or format, or let it write elsewhere"


@dataclass(frozen=True, slots=True)
class Around:
    """What comes from outside: environment, folder for caches, whom to tell progress, the time.

    `tell` is called about once a second with what runs (or is waited for, as its first word says) and for
    how many seconds; `now` is in seconds.
    """

    environ: Mapping[str, str]
    cache: str
    tell: Callable[[str, float], None]
    now: float


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One analysis of one tree; `tool` None: its program is missing, so there is no key either."""

    name: str
    settings: AnalysisSettings
    tool: str | None
    key: str


def runs_of(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    tree: str,
    analyses: Mapping[str, AnalysisSettings],
    around: Around,
    *,
    commit: str | None = None,
) -> TreeRuns:
    """Give what the analyses tell of a tree; what is not known yet is run, and kept.

    Args:
        objects: reads through `store`.
        store: has the objects of `tree` that the repository does not.
        commit: what HEAD names to an analysis that asks git.

    Raises:
        UndecidedError: a scratch tree cannot be had.
    """
    kept = AnalysisStore(repository.common_dir, around.now)
    wanted = _wanted(tree, analyses, around)
    runs: dict[str, AnalysisRun] = {}
    for each in wanted:
        run = kept.find(each.key) if each.key else None
        if run is None:
            patience = _PATIENCE + sum(settings.timeout for settings in analyses.values())
            run = _run(repository, objects, store, tree, each, around, commit, kept, patience)
        runs[each.name] = run
    return TreeRuns(tree, _digest(analyses, wanted), runs)


def twice(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    tree: str,
    analyses: Mapping[str, AnalysisSettings],
    around: Around,
    *,
    commit: str | None = None,
) -> tuple[TreeRuns, TreeRuns]:
    """Run each analysis of a tree two times, whatever is known of it; what told the same twice is kept.

    Raises:
        UndecidedError: a scratch tree cannot be had.
    """
    kept = AnalysisStore(repository.common_dir, around.now)
    wanted = _wanted(tree, analyses, around)
    patience = _PATIENCE + 2 * sum(settings.timeout for settings in analyses.values())
    first: dict[str, AnalysisRun] = {}
    second: dict[str, AnalysisRun] = {}
    for each in wanted:
        for runs in (first, second):
            runs[each.name] = _run(repository, objects, store, tree, each, around, commit, None, patience)
        if first[each.name].digest == second[each.name].digest:
            kept.keep(second[each.name])
    digest = _digest(analyses, wanted)
    return TreeRuns(tree, digest, first), TreeRuns(tree, digest, second)


def _wanted(tree: str, analyses: Mapping[str, AnalysisSettings], around: Around) -> list[_Wanted]:
    found = []
    for name in sorted(analyses):
        tool = tool_of(analyses[name], around.environ)
        parts = [FORM, tree, written(name, analyses[name]), tool]
        key = "" if tool is None else hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()
        found.append(_Wanted(name, analyses[name], tool, key))
    return found


def _digest(analyses: Mapping[str, AnalysisSettings], wanted: list[_Wanted]) -> str:
    """Give the digest of the settings and the tools together."""
    parts = [digest_of(analyses), *([each.name, each.tool] for each in wanted)]
    return "sha256:" + hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()


def _run(
    repository: Repository,
    objects: Objects,
    store: PrivateStore,
    tree: str,
    wanted: _Wanted,
    around: Around,
    commit: str | None,
    kept: AnalysisStore | None,
    patience: float,
) -> AnalysisRun:
    """Run one analysis in the scratch tree; without `kept` whatever is known of it, and nothing is kept."""
    from patchgate.git.blobs import lines_of
    from patchgate.git.scratch import whole_tree
    from patchgate.ledger.masking import Masks
    from patchgate.storage.temporary import TemporaryFolder

    making = whole_tree(
        repository,
        store,
        tree,
        cache=around.cache,
        commit=commit,
        patience_seconds=patience,
        pause=_telling_pause(around.tell),
    )
    with TemporaryFolder() as beside, making as scratch:
        # Who had the scratch tree until now may have run the same.
        if kept is not None and wanted.key and (known := kept.find(wanted.key)) is not None:
            return known
        masks = Masks([around.environ, wanted.settings.env])
        folder = os.path.join(beside.path, "told")
        os.mkdir(folder)
        run = analyse(
            wanted.name,
            wanted.settings,
            place=scratch.path,
            environ=around.environ,
            folder=folder,
            text_of=lines_of(objects, tree),
            mask=masks.stream(),
            tick=lambda seconds: around.tell(f"the analysis {wanted.name}", seconds),
        )
        run = replace(_without_secrets(run, masks), key=wanted.key)
        try:
            changed = scratch.changed()
        except UndecidedError as error:
            return _spoilt(run, f"the analysis `{wanted.name}` was stopped: {error.message}", error.hint)
        if changed:
            named = ", ".join(path.quoted for path in changed[:_NAMED])
            more = f", and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
            return _spoilt(run, f"the analysis `{wanted.name}` changed {named}{more}", _MUST_NOT_WRITE)
    return settled(run) if kept is None or not wanted.key else kept.keep(run)


def _without_secrets(run: AnalysisRun, masks: Masks) -> AnalysisRun:
    """Mask the messages of a run, which is kept and shown; what it is compared by is not in them."""
    # Many results have the same message.
    masked: dict[str, str] = {}

    def of(result: Result) -> Result:
        message = masked.get(result.message)
        if message is None:
            message = masked[result.message] = masks.text(result.message)
        return result if message == result.message else replace(result, message=message)

    return replace(run, results=tuple(map(of, run.results)), suppressed=tuple(map(of, run.suppressed)))


def _telling_pause(tell: Callable[[str, float], None]) -> Callable[[float], None]:
    """Make what sleeps while somebody else uses the scratch tree, and tells so about once a second."""
    began = time.monotonic()
    told = 0.0

    def pause(seconds: float) -> None:
        nonlocal told
        time.sleep(seconds)
        waited = time.monotonic() - began
        if waited - told >= 1:
            told = waited
            tell("waiting for somebody else who uses the scratch tree", waited)

    return pause


def _spoilt(run: AnalysisRun, reason: str, hint: str | None) -> AnalysisRun:
    """Say of an analysis that wrote where it may only read that it was not evaluated."""
    if run.outcome is Evaluated.NOT_EVALUATED:
        return run
    empty = AnalysisRun(run.analysis, run.key, "", Evaluated.NOT_EVALUATED, run.tool, reason, hint)
    return replace(empty, warnings=run.warnings)
