"""What a brief is made of: the components, intents and files that it is about, and what is known of them.

Everything is read from where it is recorded. What cannot be read beside the subject itself is named, and
hides nothing else.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

from patchgate.agents.instructions import policy_lines
from patchgate.apply.attempt_list import list_attempts, list_text
from patchgate.apply.attempt_records import AttemptRecord, records
from patchgate.apply.evidence_folders import FEEDBACK
from patchgate.approvals.approvals import LocalApprovals
from patchgate.components.policy_tree import PolicyTree, index_tree
from patchgate.errors import PatchgateError, UsageError
from patchgate.git.objects import Objects
from patchgate.git.path import RepoPath
from patchgate.git.quoting import first_of, printable
from patchgate.git.repository import ANY_CODE, Repository
from patchgate.intents.document import show_text
from patchgate.intents.intent import Intent, can_match_many
from patchgate.intents.queue import IntentQueue
from patchgate.intents.stored_intents import StoredIntents, current_moment
from patchgate.ledger.ledger import Ledger
from patchgate.policy.component import Component
from patchgate.report.wording import count, safe, show_path
from patchgate.runs.brief_text import blocks_of_tests, contract_blocks, fenced
from patchgate.runs.retrospective import lessons_of_last_runs, retrospective_of, retrospective_text
from patchgate.runs.run_questions import ask_questions, brief_lines
from patchgate.values import dataclass

MOST_FIRST = 4 << 20
"""The most bytes of the files in the first part; it is never cut, so more is refused."""
MOST_NAMES = 1000
_MOST_FEEDBACK = 16 << 10
_MOST_LISTED = 20
_MOST_REFUSED = 3
_MOST_MESSAGE = 72


@dataclass(frozen=True, slots=True)
class Subject:
    """A component, an intent or a file that a brief is about: blocks of Markdown, and what they are.

    `paths` are those whose history belongs to it, as pathspecs of git.
    """

    blocks: Sequence[str]
    title: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BriefSection:
    """A section that may be shortened; `fault` says why it could not be read."""

    title: str
    lines: tuple[str, ...]
    fault: str | None = None

    def left_out(self, fitting: int) -> str:
        """Say how much of it is missing, if so many lines fit."""
        name = self.title.removeprefix("## ")
        if self.fault is not None:
            return self.fault
        return f"{name}: {len(self.lines) - fitting:,} of {count(len(self.lines), 'line')}"


def find_subjects(repository: Repository, names: Sequence[str]) -> list[Subject]:
    """Find what the names mean, each once: a component, an intent, or a path.

    Raises:
        UsageError: a name is that of nothing here, or the files are too large.
        ConfigError: the policy of the index cannot be used.
        UndecidedError: something cannot be read.
    """
    if len(names) > MOST_NAMES:
        raise UsageError(f"a brief is about at most {MOST_NAMES} names", "name components instead of files")
    with Objects(repository) as objects:
        reader = _SubjectReader(repository, index_tree(repository, objects))
        if not names:
            stored = StoredIntents(repository.common_dir).of(repository.git_dir)
            return [each for intent in stored for each in reader.of_intent(intent)]
        return [each for name in dict.fromkeys(names) for each in reader.named(name)]


class _SubjectReader:
    """Reads subjects from the index; a component that several names mean is read once."""

    def __init__(self, repository: Repository, content: PolicyTree) -> None:
        self.repository = repository
        self.content = content
        self._seen: set[object] = set()
        self._left = MOST_FIRST

    def named(self, name: str) -> Iterator[Subject]:
        component = self.content.components.get(name)
        if component is not None:
            yield from self._component(component)
            return
        intent = StoredIntents(self.repository.common_dir).get(name)
        if intent is not None:
            yield from self.of_intent(intent)
            return
        yield from self._path(self._readable_path(name))

    def _readable_path(self, name: str) -> RepoPath:
        path = RepoPath.from_user(name, self.repository.prefix)
        root = os.fsencode(self.repository.work_tree or "")
        is_there = self.content.view.entry(path.raw) is not None or (
            b"\0" not in path.raw and root and os.path.lexists(os.path.join(root, path.raw))
        )
        if not is_there and not self.content.components.claims(path):
            known = first_of(self.content.components.ids, _MOST_LISTED) or "none is declared"
            raise UsageError(
                f"{printable(name, 200)} is no component, intent or path here", f"components: {known}"
            )
        return path

    def of_intent(self, intent: Intent) -> Iterator[Subject]:
        """Read an intent: its entries, and the files that they name exactly."""
        scope = intent.scope
        lines = [
            f"- {name}: {show_path(path)}"
            for name, paths in (
                ("allowed", scope.allowed),
                ("related", scope.related),
                ("forbidden", scope.forbidden),
            )
            for path in paths
        ]
        title = f"## Files of {intent.id}: {safe(intent.reason)}"
        entries = (*scope.allowed, *scope.related)
        pathspecs = tuple(f":(top){os.fsdecode(each.raw)}" for each in entries)
        yield Subject([title, "\n".join(lines)], f"the files of {intent.id}", pathspecs)
        for entry in entries:
            if not can_match_many(entry):
                yield from self._path(entry)

    def _path(self, path: RepoPath) -> Iterator[Subject]:
        claims = self.content.components.claims(path)
        for component, _ in claims:
            yield from self._component(component)
        if claims or path in self._seen:
            return
        self._seen.add(path)
        entry = self.content.view.entry(path.raw)
        title = f"## File: {path.quoted}"
        if entry is None:
            shown = "It is not in the index."
        elif not entry.is_file:
            shown = "It is not a regular file."
        else:
            raw = self._read(entry.oid)
            shown = "It is not text." if b"\0" in raw else fenced(raw)
        pathspec = (f":(top,literal){os.fsdecode(path.raw)}",)
        yield Subject([title, shown], path.quoted, pathspec)

    def _component(self, component: Component) -> Iterator[Subject]:
        if component.id in self._seen:
            return
        self._seen.add(component.id)
        view = self.content.view
        blocks = [*contract_blocks(view, component), *blocks_of_tests(view, component)]
        self._spend(sum(len(each) for each in blocks))
        globs = tuple(f":(top,glob){glob}" for _, glob in component.globs)
        paths = (f":(top,literal){component.settings.contract}", *globs)
        titles = f"contract and tests of {component.id}"
        yield Subject([f"# Component {component.id}", *blocks], titles, paths)

    def _read(self, oid: str) -> bytes:
        self._spend(self.content.view.objects.sizes([oid])[oid])
        return self.content.view.objects.read(oid)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            message = f"the files of this brief have more than {MOST_FIRST >> 20} MiB, and are never cut"
            raise UsageError(message, "name fewer components or files")


def _section(title: str, read: Callable[[], Sequence[str]]) -> BriefSection:
    """Read a section; a fault of it is said, and ends nothing."""
    try:
        return BriefSection(f"## {title}", tuple(read()))
    except PatchgateError as error:
        return BriefSection(f"## {title}", (), f"{title} could not be read: {safe(error.message)}")


def surroundings(repository: Repository, now: float) -> list[BriefSection]:
    """Read what may be shortened, the most important first."""

    def policy() -> Sequence[str]:
        with Objects(repository) as objects:
            lines = policy_lines(index_tree(repository, objects).policy)
        return [f"- {line}" for line in lines]

    def intents() -> Sequence[str]:
        queue = IntentQueue(repository, current_moment())
        found = queue.intents.of(repository.git_dir)
        return [line for each in found for line in show_text(queue.describe(each))]

    return [
        _section("Policy", policy),
        _section("Last refusal", lambda: _last_refusal(repository)),
        _section("Refused by hooks", lambda: _refused_by_hooks(repository)),
        _section("Intents of this worktree", intents),
        _section("Approvals", lambda: _approvals(repository)),
        _section("Answers", lambda: brief_lines(ask_questions(repository))),
        _section("Lessons", lambda: [f"- {safe(each)}" for each in lessons_of_last_runs(repository, now)]),
    ]


def _last_refusal(repository: Repository) -> list[str]:
    """Return what the last attempt in this working tree was refused for; nothing if it was applied."""
    here = repository.work_tree
    found = [each for each in records(Ledger(repository.common_dir)) if each.work_tree == here]
    if not found or found[-1].applied or found[-1].verdict != "rejected":
        return []
    return _feedback_of(found[-1])


def _feedback_of(attempt: AttemptRecord) -> list[str]:
    """Return the feedback of an attempt; only its rules if its evidence is gone."""
    if attempt.dir is not None:
        place = os.path.join(attempt.dir, FEEDBACK)
        with (
            contextlib.suppress(OSError, ValueError),
            open(place, encoding="utf-8", errors="replace") as file,
        ):
            return file.read(_MOST_FEEDBACK).rstrip().split("\n")
    return [f"- {attempt.attempt}: {first_of(attempt.rules, _MOST_LISTED, lambda rule: safe(rule, 60))}"]


def _refused_by_hooks(repository: Repository) -> list[str]:
    """List what hooks refused last, newest first, with its time: it may have been corrected since."""
    events = list(Ledger(repository.common_dir).find_events({"refused"}))[-_MOST_REFUSED:]
    lines = []
    for event in reversed(events):
        rules = event.about.get("rules")
        if isinstance(rules, list) and rules:
            named = first_of(rules, _MOST_LISTED, lambda rule: safe(str(rule), 60))
            lines.append(f"- {safe(event.at, 40)} {safe(str(event.about.get('hook')), 40)}: {named}")
    return lines


def _approvals(repository: Repository) -> list[str]:
    statements, doubt = LocalApprovals(repository.common_dir).read()
    lines = [
        f"- {', '.join(each.rules)}: {safe(each.reason)} ({safe(each.by)}, {each.at})"
        for each in statements[-_MOST_LISTED:][::-1]
    ]
    return [*lines, *([f"- {safe(doubt)}"] if doubt else [])]


def research(repository: Repository, subjects: Sequence[Subject], now: float) -> list[BriefSection]:
    """Read what only a brief with research has: history, earlier attempts, the last run."""

    def last_run() -> Sequence[str]:
        try:
            found = retrospective_of(repository, None, now)
        except UsageError:
            # There was none.
            return []
        return [f"- {line.strip()}" for line in retrospective_text(found)]

    return [
        _section("History", lambda: _history(repository, [path for each in subjects for path in each.paths])),
        _section("Attempts", lambda: list_text(list_attempts(repository)[:_MOST_LISTED])),
        _section("The last run", last_run),
    ]


def _history(repository: Repository, paths: Sequence[str]) -> list[str]:
    """List the last commits that touched some paths, or the last of all."""
    arguments = ["log", f"-n{_MOST_LISTED}", "--no-color", "--format=%h %as %s", "HEAD"]
    done = repository.git(*arguments, "--", *paths, in_work_tree=bool(paths), answers=ANY_CODE)
    if done.code != 0:
        # No commit yet, or a pathspec that git cannot read.
        return []
    return [f"- {printable(line, _MOST_MESSAGE + 20)}" for line in done.out.splitlines()]
