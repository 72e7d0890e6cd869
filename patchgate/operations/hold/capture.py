"""Capture: a component's files become its baseline, if its tests pass on exactly them.

Decides the order: the content, the components that are asked for, the tests of all of them, each in a scratch
tree that nothing before has touched, and only then the writing: one refusal, and nothing is written at all.
With `reverify` nothing is written to the working tree; what is kept is that the tests passed once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from patchgate.change.path import RepoPath
from patchgate.change.quoting import printable
from patchgate.declared.baseline import Baseline, hashes, write_baseline
from patchgate.declared.component import Component, Role
from patchgate.errors import UsageError
from patchgate.git.objects import Objects
from patchgate.git.private import PrivateStore
from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.operations.hold.capture_content import Content, content_of
from patchgate.operations.hold.capture_tests import NO_TESTS, Ending, Ran, run_tests
from patchgate.operations.hold.capture_writing import is_written, require_place, write_file
from patchgate.operations.hold.captured import Capture, Captured, Request, Result, Surroundings
from patchgate.operations.judge.drift import files_of, record
from patchgate.operations.land.approve import who_approves

_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Tried:
    """A component whose tests were asked: the baseline that would be written, and its blob."""

    captured: Captured
    content: bytes
    oid: str

    @property
    def has_passed(self) -> bool:
        return self.captured.run is not None and self.captured.run.ending is Ending.PASSED


def capture(repository: Repository, request: Request, around: Surroundings) -> Capture:
    """Run the tests of components, and record their files if all of them pass.

    Raises:
        UsageError: a component is not declared, or the options do not go together.
        ConfigError: the policy of the content cannot be used.
        UndecidedError: the content cannot be read, the tests cannot be tried, or a baseline not be written.
    """
    _require_sense(request)
    with PrivateStore(repository) as store, Objects(repository, store.variables) as objects:
        content = content_of(repository, objects, store, from_disk=request.from_disk)
        components = _named(content, request.ids)
        warnings = _prepare(repository, request, components, around)
        tried = [_try(repository, content, each, request, around, warnings) for each in components]
        if not all(each.has_passed for each in tried):
            return Capture(tuple(_held_back(each) for each in tried), tuple(warnings))
        if request.reverify:
            done = _verify(repository, content, tried, request, around, warnings)
        else:
            done = [_write(repository, objects, each) for each in tried]
            warnings += _ignored(repository, components)
        return Capture(tuple(done), tuple(warnings), request.with_note)


def _require_sense(request: Request) -> None:
    if not request.ids:
        raise UsageError("capture takes the id of a component", "git patchgate component list names them")
    if request.with_note and not request.reverify:
        raise UsageError(
            "--commit-note keeps a verification", "name --reverify too; a capture is verified by its commit"
        )
    if request.reverify and request.from_disk:
        raise UsageError("--reverify looks at the index", "leave --worktree out")


def _named(content: Content, ids: Sequence[str]) -> list[Component]:
    components = content.policy.components
    found: list[Component] = []
    for name in dict.fromkeys(ids):
        component = components.get(name)
        if component is None:
            from patchgate.declared.names import did_you_mean

            close = did_you_mean(name, components.ids)
            known = (
                "git patchgate component list names them" if components else "declare one: [components.ID]"
            )
            raise UsageError(
                f"there is no component `{printable(name, 80)}` in the policy of what would be captured",
                f"did you mean `{close}`?" if close else known,
            )
        found.append(component)
    return found


def _prepare(
    repository: Repository, request: Request, components: Sequence[Component], around: Surroundings
) -> list[str]:
    """Make sure, before tests take their time, that what comes of them could be kept."""
    if request.with_note:
        who_approves(repository, around.environ)
    if request.reverify:
        torn = Ledger(repository.common_dir).require_writable()
        return [torn] if torn else []
    for component in components:
        require_place(repository.work_tree or "", component.baseline)
    return []


def _try(
    repository: Repository,
    content: Content,
    component: Component,
    request: Request,
    around: Surroundings,
    warnings: list[str],
) -> _Tried:
    view = content.view
    files = files_of(component, view)
    recorded = record(component, view, files)
    raw = write_baseline(component.id, recorded)
    oid = view.objects.hash("blob", raw)
    captured = Captured(component, Result.REFUSED, "", hashes=hashes(Baseline(component.id, recorded)))
    if request.reverify:
        entry = view.entry(component.baseline.raw)
        if entry is None or not entry.is_file or entry.oid != oid:
            reason = "has no baseline yet" if entry is None else "is not as its baseline records it"
            hint = f"git patchgate baseline capture {component.id}"
            return _Tried(
                replace(captured, reason=f"{reason}, so there is nothing to verify", hint=hint), raw, oid
            )
    warnings += _lacking(component, {role for role, _ in files.values()})
    tests = [path for path, (role, entry) in files.items() if role is Role.TESTS and entry.is_file]
    run = _run(repository, content, component, tests, around, warnings)
    undecided = run.ending is Ending.NOT_RUN
    result = Result.UNDECIDED if undecided else Result.REFUSED
    return _Tried(replace(captured, result=result, reason=run.reason, hint=run.hint, run=run), raw, oid)


def _lacking(component: Component, roles: set[Role]) -> list[str]:
    """Warn of a role without any file: a capture of nothing is rarely meant."""
    wanted = (Role.CONTRACT, Role.IMPLEMENTATION)
    return [f"`{component.id}` has no {role.value} file here" for role in wanted if role not in roles]


def _run(
    repository: Repository,
    content: Content,
    component: Component,
    tests: Sequence[RepoPath],
    around: Surroundings,
    warnings: list[str],
) -> Ran:
    if not tests:
        return NO_TESTS
    from patchgate.durable.temporary import TemporaryFolder
    from patchgate.git.scratch import whole_tree

    making = whole_tree(repository, content.store, content.tree, cache=around.cache, commit=content.commit)
    with TemporaryFolder() as beside, making as scratch:
        run = run_tests(
            component,
            tests,
            content.policy.config.baselines.source_roots,
            place=scratch.path,
            beside=beside.path,
            environ=around.environ,
            tick=lambda seconds: around.tell(f"the tests of {component.id}", seconds),
        )
        warnings += run.warnings
        if changed := scratch.changed():
            named = ", ".join(path.quoted for path in changed[:_NAMED])
            more = ", …" if len(changed) > _NAMED else ""
            warnings.append(f"the tests of `{component.id}` changed {named}{more}, which is not recorded")
    return run


def _held_back(tried: _Tried) -> Captured:
    """Tell of a component whose tests passed that nothing was kept, for those of another did not."""
    if not tried.has_passed:
        return tried.captured
    return replace(tried.captured, result=Result.HELD_BACK)


def _write(repository: Repository, objects: Objects, tried: _Tried) -> Captured:
    work_tree = repository.work_tree or ""
    path = tried.captured.component.baseline
    is_there = is_written(work_tree, path, tried.content)
    if not is_there:
        write_file(work_tree, path, tried.content)
    staged = objects.header(f":0:{path.raw.decode('ascii')}")
    return replace(
        tried.captured,
        result=Result.UNCHANGED if is_there else Result.RECORDED,
        is_staged=staged is not None and staged.oid == tried.oid,
    )


def _ignored(repository: Repository, components: Sequence[Component]) -> list[str]:
    """Warn of baselines that git would not add."""
    names = b"".join(each.baseline.raw + b"\0" for each in components)
    listed = repository.git("check-ignore", "-z", "--stdin", stdin=names, in_work_tree=True)
    return [
        f"git ignores {RepoPath.from_git(raw).quoted}: take it out of .gitignore, or add it by git add -f"
        for raw in listed.out.split(b"\0")
        if raw
    ]


def _verify(
    repository: Repository,
    content: Content,
    tried: Sequence[_Tried],
    request: Request,
    around: Surroundings,
    warnings: list[str],
) -> list[Captured]:
    from patchgate.operations.hold.verified import record_verifications
    from patchgate.operations.judge.contract_cache import FactsCache
    from patchgate.operations.judge.staleness import dependency_digests
    from patchgate.operations.judge.verifications import Verification

    components = content.policy.components
    with FactsCache(repository.common_dir) as cache:
        made = [
            Verification(
                each.captured.component.id,
                each.oid,
                int(around.now),
                dependency_digests(each.captured.component, components, content.view, cache),
                "ledger",
            )
            for each in tried
        ]
    warnings += record_verifications(repository, made, around.environ, with_note=request.with_note)
    return [replace(each.captured, result=Result.VERIFIED, is_staged=True) for each in tried]
