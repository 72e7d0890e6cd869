"""What the contents of contracts and tests that differ come to: another promise, other tests, nothing left.

Decides what is a difference in substance: not a mode, not blanks, not a comment in Python. A content that is
not given counts as something, and as another one. What is said of it is told in `drift`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence

from patchgate.check.python_tokens import is_readable, packed, statements_of, text_of
from patchgate.components.baseline import RecordedFile
from patchgate.components.contract_version import is_higher, version_of
from patchgate.components.drift_comparison import Comparison, is_named_as_test, is_python
from patchgate.components.python_tests import read_tests
from patchgate.git.model import EXECUTABLE, REGULAR, Entry
from patchgate.git.path import RepoPath
from patchgate.policy.component import Role
from patchgate.policy.json_places import JsonDocument, read_json

_NO_BYTES = hashlib.sha256().hexdigest()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Texts = Mapping[str, bytes]
"""Contents by blob id."""


def promises_otherwise(found: Comparison, texts: Texts, *, but: Sequence[str] = ()) -> bool | None:
    """Tell whether the contract's document is not the recorded one; None where one of them cannot be read.

    Args:
        but: keys whose values do not count.
    """
    old = next(iter(found.old(Role.CONTRACT).values()), None)
    new = next(iter(found.new(Role.CONTRACT).values()), None)
    return is_another_promise(old, new, texts, but=but)


def is_another_promise(
    old: RecordedFile | Entry | None, new: Entry | None, texts: Texts, *, but: Sequence[str]
) -> bool | None:
    """Tell whether two contracts are other documents; None where one of them cannot be read."""
    if old is None or new is None:
        return old is not new
    if old.oid == new.oid and _is_file(old) == _is_file(new):
        return False
    documents = [_document(texts.get(each.oid), but) for each in (old, new)]
    return None if None in documents else documents[0] != documents[1]


def _document(content: bytes | None, but: Sequence[str]) -> str | None:
    """Write a JSON document so that equal ones are equal texts; a key that stands twice makes it none."""
    read = None if content is None else read_json(content)
    if not isinstance(read, JsonDocument) or read.doubled:
        return None
    value = read.value
    if but and isinstance(value, dict):
        value = {key: each for key, each in value.items() if key not in but}
    return json.dumps(value, sort_keys=True)


def is_version_higher(found: Comparison, texts: Texts) -> bool | None:
    """Tell whether the contract's version is higher than recorded; None where it cannot be told."""
    old, new = found.old(Role.CONTRACT), found.new(Role.CONTRACT)
    if not old or not new:
        return None
    before = _version(texts.get(next(iter(old.values())).oid))
    now = _version(texts.get(next(iter(new.values())).oid))
    if before is None or now is None:
        return None
    return is_higher(now, before)


def _version(content: bytes | None) -> str | None:
    return None if content is None else version_of(content)


def has_other_tests(found: Comparison, texts: Texts) -> bool:
    """Tell whether the tests of a component are others than recorded: not the same under other names.

    What the declaration leaves out, or makes a test as it was, changed no test.
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


def emptied(found: Comparison, texts: Texts) -> frozenset[RepoPath]:
    """Name the test files that held something when they were recorded, and hold nothing now."""
    return frozenset(
        path
        for path, (recorded, (role, entry)) in found.changed.items()
        if recorded.role is role is Role.TESTS and _is_blank(entry, texts) and not _is_blank(recorded, texts)
    )


def python_tests(
    found: Comparison, texts: Texts
) -> tuple[dict[RepoPath, bytes | None], dict[RepoPath, bytes | None]]:
    """Give the tests that differ, as they were recorded and as they are; None for what is no Python.

    A new file that is not named as tests are is no place for what was in one that is.
    """
    before = {path: _python(path, each, texts) for path, each in found.old(Role.TESTS).items()}
    are_named = any(map(is_named_as_test, before))
    after = {
        path: _python(path, entry, texts)
        for path, entry in found.new(Role.TESTS).items()
        if path in before or is_named_as_test(path) or not are_named
    }
    return before, after


def is_unread(found: Comparison, texts: Texts) -> bool:
    """Tell whether the content of a Python test that differs is not given."""
    new = found.new(Role.TESTS)
    return any(is_python(path) and _is_file(each) and each.oid not in texts for path, each in new.items())


def _substance(path: RepoPath, each: RecordedFile | Entry, texts: Texts) -> object:
    """Give what makes a test file another one: its statements, or else its content and that it is a file."""
    content = _python(path, each, texts)
    text = None if content is None else text_of(content)
    return (_is_file(each), each.oid) if text is None or not is_readable(text) else _statements(text)


def _statements(text: str) -> tuple[tuple[int, str], ...]:
    """Give the statements of Python with their depths; comments, layout and bare strings are none."""
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
