"""Compare the files of a component with a baseline: what changed, is gone, or moved.

Decides what is a real difference: not a mode, whitespace, or a comment in Python. A content that is not given
counts as different and not empty. `drift` makes the findings.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from patchgate.components.baseline_file import Baseline, RecordedFile
from patchgate.components.contract_versions import is_higher, version_of
from patchgate.git.model import EXECUTABLE, REGULAR, Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role
from patchgate.values import dataclass, field

Files = Mapping[RepoPath, tuple[Role, Entry]]


@dataclass(frozen=True, slots=True)
class DriftComparison:
    """How the files of a component differ from its baseline, each sorted by path.

    `changed` exist on both sides and differ in content or mode; `moved` maps new paths to old ones;
    `left_out` still exist in the tree, but are no longer declared in the recorded role.
    """

    changed: Mapping[RepoPath, tuple[RecordedFile, tuple[Role, Entry]]]
    added: Mapping[RepoPath, tuple[Role, Entry]]
    gone: Mapping[RepoPath, RecordedFile]
    moved: Mapping[RepoPath, RepoPath]
    left_out: Mapping[RepoPath, RecordedFile] = field(default_factory=dict)

    @property
    def is_equal(self) -> bool:
        """Return whether nothing differs."""
        return not (self.changed or self.added or self.gone or self.moved or self.left_out)

    def differs(self, role: Role) -> bool:
        """Return whether any file of a role changed, was added or is gone, except `left_out`."""
        return role in self.arrived_roles or any(each.role is role for each in self.gone.values())

    @property
    def arrived_roles(self) -> frozenset[Role]:
        """The roles with a changed or added file."""
        files = *self.added.values(), *(now for _, now in self.changed.values())
        return frozenset(role for role, _ in files)

    def old(self, role: Role) -> dict[RepoPath, RecordedFile]:
        """Return the recorded files of a role that changed or are gone.

        This includes a contract that was left out, because it was promised, but not such tests.
        """
        found = {path: recorded for path, (recorded, _) in self.changed.items() if recorded.role is role}
        found |= {path: recorded for path, recorded in self.gone.items() if recorded.role is role}
        if role is Role.CONTRACT:
            found |= self.left_out_of(role)
        return dict(sorted(found.items()))

    def left_out_of(self, role: Role) -> dict[RepoPath, RecordedFile]:
        """Return the recorded files that are no longer declared in a role."""
        return {path: recorded for path, recorded in self.left_out.items() if recorded.role is role}

    def new(self, role: Role) -> dict[RepoPath, Entry]:
        """Return the current files of a role that changed or were added."""
        found = {path: entry for path, (_, (now, entry)) in self.changed.items() if now is role}
        found |= {path: entry for path, (now, entry) in self.added.items() if now is role}
        return dict(sorted(found.items()))


def is_python(path: RepoPath) -> bool:
    """Return whether the test functions of a file can be read."""
    return path.raw.endswith(b".py")


def is_named_as_test(path: RepoPath) -> bool:
    """Return whether a file has a name by which runners find tests: `test_*.py`, `*_test.py`."""
    return is_python(path) and (path.name.startswith(b"test_") or path.name.endswith(b"_test.py"))


def compare(files: Files, baseline: Baseline, unclaimed: Collection[RepoPath] = ()) -> DriftComparison:
    """Compare the files of a component with a baseline.

    Args:
        unclaimed: recorded files that are in the tree, but not in the component.
    """
    changed: dict[RepoPath, tuple[RecordedFile, tuple[Role, Entry]]] = {}
    added: dict[RepoPath, tuple[Role, Entry]] = {}
    missing = {path: recorded for path, recorded in baseline.files.items() if path not in files}
    left_out = {path: recorded for path, recorded in missing.items() if path in unclaimed}
    gone = {path: recorded for path, recorded in missing.items() if path not in unclaimed}
    for path, (role, entry) in files.items():
        recorded = baseline.files.get(path)
        if recorded is not None and recorded.role is not role:
            left_out[path] = recorded
        if recorded is None or recorded.role is not role:
            added[path] = (role, entry)
        elif recorded.oid != entry.oid or recorded.mode != entry.mode:
            changed[path] = (recorded, (role, entry))
    moved = dict(_moves(gone, added)) if gone and added else {}
    for new, old in moved.items():
        del gone[old], added[new]
    return DriftComparison(
        changed,
        dict(sorted(added.items())),
        dict(sorted(gone.items())),
        moved,
        dict(sorted(left_out.items())),
    )


def _moves(
    gone: Mapping[RepoPath, RecordedFile], added: Mapping[RepoPath, tuple[Role, Entry]]
) -> Iterator[tuple[RepoPath, RepoPath]]:
    """Pair removed files with added ones of equal content, mode and role: by names, then in order.

    A test under a name that no runner collects has not moved: both names must be of one kind.
    """

    def key(path: RepoPath, role: Role, each: RecordedFile | Entry) -> tuple[object, ...]:
        kind = (is_python(path), is_named_as_test(path)) if role is Role.TESTS else ()
        return each.oid, each.mode, role, kind

    waiting: dict[tuple[object, ...], list[RepoPath]] = {}
    for path in sorted(gone):
        waiting.setdefault(key(path, gone[path].role, gone[path]), []).append(path)
    left: list[tuple[RepoPath, list[RepoPath]]] = []
    for path in sorted(added):
        role, entry = added[path]
        candidates = waiting.get(key(path, role, entry), [])
        same = next((old for old in candidates if old.name == path.name), None)
        if same is None:
            left.append((path, candidates))
        else:
            candidates.remove(same)
            yield path, same
    for path, candidates in left:
        if candidates:
            yield path, candidates.pop(0)


_NO_BYTES = hashlib.sha256().hexdigest()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Texts = Mapping[str, bytes]
"""Contents by blob id."""


def is_contract_changed(found: DriftComparison, texts: Texts, *, but: Sequence[str] = ()) -> bool | None:
    """Return whether the contract's JSON differs from the recorded one; None if one cannot be read.

    Args:
        but: keys whose values do not count.
    """
    old = next(iter(found.old(Role.CONTRACT).values()), None)
    new = next(iter(found.new(Role.CONTRACT).values()), None)
    return is_different_contract(old, new, texts, but=but)


def is_different_contract(
    old: RecordedFile | Entry | None, new: Entry | None, texts: Texts, *, but: Sequence[str]
) -> bool | None:
    """Return whether two contracts differ as JSON; None if one of them cannot be read."""
    if old is None or new is None:
        return old is not new
    if old.oid == new.oid and _is_file(old) == _is_file(new):
        return False
    documents = [_document(texts.get(each.oid), but) for each in (old, new)]
    return None if None in documents else documents[0] != documents[1]


def _document(content: bytes | None, but: Sequence[str]) -> str | None:
    """Write a JSON document so that equal ones are equal texts; None if a key occurs twice."""
    from patchgate.policy.strict_json import JsonDocument, read_json

    read = None if content is None else read_json(content)
    if not isinstance(read, JsonDocument) or read.doubled:
        return None
    value = read.value
    if but and isinstance(value, dict):
        value = {key: each for key, each in value.items() if key not in but}
    return json.dumps(value, sort_keys=True)


def is_version_higher(found: DriftComparison, texts: Texts) -> bool | None:
    """Return whether the contract's version is higher than recorded; None if one has no version."""
    old, new = found.old(Role.CONTRACT), found.new(Role.CONTRACT)
    if not old or not new:
        return None
    contents = (texts.get(next(iter(old.values())).oid), texts.get(next(iter(new.values())).oid))
    before, now = (None if content is None else version_of(content) for content in contents)
    return None if before is None or now is None else is_higher(now, before)


def have_tests_changed(found: DriftComparison, texts: Texts) -> bool:
    """Return whether the tests of a component changed, not only their paths.

    A file that only enters or leaves the declaration changes no test.
    """
    kept = {
        path: (recorded, entry)
        for path, (recorded, (role, entry)) in found.changed.items()
        if recorded.role is role is Role.TESTS
    }
    if any(_substance(path, old, texts) != _substance(path, new, texts) for path, (old, new) in kept.items()):
        return True
    new = {
        path: entry
        for path, entry in found.new(Role.TESTS).items()
        if path not in found.left_out or found.left_out[path].oid != entry.oid
    }
    sides: tuple[Mapping[RepoPath, RecordedFile | Entry], ...] = (
        found.old(Role.TESTS),
        new,
        found.left_out_of(Role.TESTS),
    )
    lost, came, left_out = (
        Counter(
            _substance(path, each, texts)
            for path, each in side.items()
            if path not in kept and _holds_tests(path, each, texts)
        )
        for side in sides
    )
    return bool(lost - came or came - lost - left_out)


def emptied_tests(found: DriftComparison, texts: Texts) -> frozenset[RepoPath]:
    """Return the test files that had content when they were recorded, and are empty now."""
    return frozenset(
        path
        for path, (recorded, (role, entry)) in found.changed.items()
        if recorded.role is role is Role.TESTS and _is_blank(entry, texts) and not _is_blank(recorded, texts)
    )


def changed_python_tests(
    found: DriftComparison, texts: Texts
) -> tuple[dict[RepoPath, bytes | None], dict[RepoPath, bytes | None]]:
    """Return the tests that differ, as recorded and as they are; None for files that are not Python.

    A test cannot move to a new file that is not named like a test.
    """
    before = {path: _python(path, each, texts) for path, each in found.old(Role.TESTS).items()}
    are_named = any(map(is_named_as_test, before))
    after = {
        path: _python(path, entry, texts)
        for path, entry in found.new(Role.TESTS).items()
        if path in before or is_named_as_test(path) or not are_named
    }
    return before, after


def is_unread_test(found: DriftComparison, texts: Texts) -> bool:
    """Return whether the content of a Python test that differs is missing in `texts`."""
    new = found.new(Role.TESTS)
    return any(is_python(path) and _is_file(each) and each.oid not in texts for path, each in new.items())


def _substance(path: RepoPath, each: RecordedFile | Entry, texts: Texts) -> object:
    """Return what is compared of a test file: its statements, or else its content and type."""
    # 10 ms to import with what follows, and most changes touch only the implementation.
    from patchgate.check.python_tokens import is_readable, text_of

    content = _python(path, each, texts)
    text = None if content is None else text_of(content)
    return (_is_file(each), each.oid) if text is None or not is_readable(text) else _statements(text)


def _statements(text: str) -> tuple[tuple[int, str], ...]:
    """Return the statements of Python with their depths, without comments, layout and bare strings."""
    from patchgate.check.python_tokens import packed, statements_of

    depths: list[int] = []
    found: list[tuple[int, str]] = []
    for statement in statements_of(text):
        while depths and depths[-1] >= statement.indent:
            depths.pop()
        depths.append(statement.indent)
        if not all(token[-1] in "\"'" for token in statement.tokens):
            found.append((len(depths), packed(statement.tokens)))
    return tuple(found)


def _holds_tests(path: RepoPath, each: RecordedFile | Entry, texts: Texts) -> bool:
    from patchgate.components.python_tests import read_tests

    content = _python(path, each, texts)
    return not _is_blank(each, texts) if content is None else bool(read_tests(content).functions)


def _python(path: RepoPath, each: RecordedFile | Entry, texts: Texts) -> bytes | None:
    return texts.get(each.oid) if is_python(path) and _is_file(each) else None


def _is_blank(each: RecordedFile | Entry, texts: Texts) -> bool:
    if not _is_file(each):
        return False
    if isinstance(each, RecordedFile) and each.sha256 == _NO_BYTES:
        return True
    content = texts.get(each.oid)
    return content is not None and not content.removeprefix(_BYTE_ORDER_MARK).strip()


def _is_file(each: RecordedFile | Entry) -> bool:
    return each.mode in {REGULAR, EXECUTABLE}
