"""Baselines are written in one form, and read strictly: each fault has its line, none a traceback."""

from __future__ import annotations

import json
import random
import string
from itertools import pairwise

import pytest

from patchgate.components.baseline_file import (
    MAX_BASELINE_BYTES,
    Baseline,
    BaselineFault,
    RecordedFile,
    hashes,
    read_baseline,
    write_baseline,
)
from patchgate.git.path import RepoPath
from patchgate.git.quoting import is_printable
from patchgate.policy.component import Role

OID = "1" * 40
SUM = "a" * 64
FILES = {
    RepoPath(b"contracts/shaping/interface.json"): RecordedFile(Role.CONTRACT, "100644", OID, SUM),
    RepoPath(b"src/shaping/core.py"): RecordedFile(Role.IMPLEMENTATION, "100755", "2" * 40, SUM),
    RepoPath(b"tests/test_shaping.py"): RecordedFile(Role.TESTS, "100644", "3" * 40, SUM),
}
GOOD = write_baseline("shaping", FILES).decode()


def fault(raw: bytes | str, component: str = "shaping") -> BaselineFault:
    """Read what can't be read."""
    found = read_baseline(raw.encode() if isinstance(raw, str) else raw, component)
    assert isinstance(found, BaselineFault)
    assert found.line is not None
    assert found.hint
    assert all(is_printable(character) for character in found.message + found.hint)
    return found


def random_files(chooser: random.Random) -> dict[RepoPath, RecordedFile]:
    """Make files with any names that git can keep, and any modes."""
    letters = [*string.ascii_letters.encode(), *b'\t\n"\\ .$[', 0xC3, 0xA9, 0xFF, 0x80, 0xE2, 0x80, 0xAE]
    files = {}
    for _ in range(chooser.randrange(12)):
        name = bytes(chooser.choices(letters, k=chooser.randrange(1, 9)))
        path = RepoPath(b"x/" + name.replace(b".", b"_") + b"/y")
        mode = chooser.choice(["100644", "100755", "120000", "160000"])
        content = None if mode == "160000" else f"{chooser.getrandbits(256):064x}"
        files[path] = RecordedFile(
            chooser.choice(list(Role)), mode, f"{chooser.getrandbits(160):040x}", content
        )
    return files


def test_what_is_written_reads_back_whatever_the_names() -> None:
    chooser = random.Random(7)
    for _ in range(300):
        files = random_files(chooser)
        written = write_baseline("a.b-c", files)
        read = read_baseline(written, "a.b-c")
        assert read == Baseline("a.b-c", files)
        assert list(read.files) == sorted(files)
        assert written == write_baseline("a.b-c", dict(sorted(files.items(), reverse=True)))


def test_it_has_the_form_that_a_json_formatter_leaves_alone() -> None:
    formatted = json.dumps(json.loads(GOOD), indent=2, sort_keys=True) + "\n"
    assert formatted == GOOD
    assert GOOD.isascii()
    assert json.loads(GOOD)["files"]["src/shaping/core.py"] == {
        "mode": "100755",
        "oid": "2" * 40,
        "role": "implementation",
        "sha256": SUM,
    }


def test_between_what_changes_of_two_files_stand_two_lines_that_do_not() -> None:
    lines = GOOD.splitlines()
    changing = [
        index for index, line in enumerate(lines) if line.split('"')[1:2] in (["mode"], ["oid"], ["sha256"])
    ]
    between = [later - index for index, later in pairwise(changing)]
    assert set(between) == {1, 2, 3}
    assert between.count(3) == len(FILES) - 1


def test_another_layout_reads_the_same() -> None:
    assert read_baseline(json.dumps(json.loads(GOOD)).encode(), "shaping") == Baseline("shaping", FILES)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("baseline/1", "baseline/2", 23, "(patchgate.baseline/2)"),
        ("baseline/1", "baseline/0", 23, "schema of"),
        ('"component": "shaping"', '"component": "other"', 2, 'of "other"'),
        ('"component": "shaping"', '"component": null', 2, "of null"),
        ('  "component": "shaping",\n', "", 1, '"component" is missing'),
        ('"component"', '"more": 1, "component"', 2, 'unknown key "more"'),
        ('"mode": "100755"', '"mode": "100664"', 11, '"100664" is not a file mode'),
        ('"mode": "100755"', '"mode": 100755', 11, "not a file mode"),
        ('"mode": "100755"', '"mode": [NaN]', 11, "not a file mode"),
        ("2222", "222G", 12, "not an object id"),
        ("2" * 40, "2" * 64, 3, "differ in length"),
        ('"implementation"', '"documentation"', 13, '"documentation" is not a role'),
        (f'n",\n      "sha256": "{SUM}"', 'n",\n      "sha256": null', 14, "null is not a SHA-256"),
        ("100755", "160000", 14, "gitlink"),
        ('"oid": "2', '"id": "2', 12, 'unknown key "id"'),
        ("src/shaping/core.py", "src/../core.py", 10, "not a path"),
        ("src/shaping/core.py", "/src/core.py", 10, "not a path"),
        ("src/shaping/core.py", "src/.git/core.py", 10, "not a path"),
        ("src/shaping/core.py", '\\"src\\"', 10, "git quotes"),
        ("src/shaping/core.py", '\\"src\\\\q\\"', 10, "git quotes"),
        ("src/shaping/core.py", "src\\ud800", 10, "git quotes"),
        ("src/shaping/core.py", "src\\u202e", 10, "git quotes"),
        ("src/shaping/core.py", "", 10, "not a path"),
        ("src/shaping/core.py", "contracts/shaping/interface.json", 10, "occurs twice"),
        ('"oid": "2', '"mode": "100644", "oid": "2', 12, '"mode" occurs twice'),
        ('"schema"', '"files": {}, "schema"', 23, '"files" occurs twice'),
        ("{\n      ", "[\n      ", 5, "not JSON"),
        ('"files": {', '"files": {"x": 7, ', 3, "JSON object"),
        ("  }\n}\n", "  }\n", 23, "not JSON"),
    ],
)
def test_each_fault_is_told_with_its_line(old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD or old == "  }\n}\n"
    spoiled = GOOD.replace(old, new, 1) if old in GOOD else GOOD[:-3]
    found = fault(spoiled)
    assert said in found.message
    assert found.line == line


@pytest.mark.parametrize(
    ("raw", "line", "said"),
    [
        (GOOD.replace("      ", "<<<<<<< HEAD\n      ", 1), 5, "conflict"),
        (GOOD.replace('    "src', '=======\n    "src', 1), 10, "conflict"),
        (GOOD.replace('    "src', '>>>>>>> theirs\r\n    "src', 1), 10, "conflict"),
        (GOOD.replace('    "src', '||||||| 1234567\n    "src', 1), 10, "conflict"),
        ("\ufeff" + GOOD, 1, "byte-order mark"),
        (GOOD.encode().replace(b"core", b"c\xffre"), 10, "not UTF-8"),
        (GOOD.encode("utf-16"), 1, "not UTF-8"),
        (GOOD.replace("core", "c\0re"), 10, "not JSON"),
        ("", 1, "not JSON"),
        ("[]", 1, "JSON object"),
        ("[" * 100_000, 1, "nested"),
        ('{"files": ' * 100_000, 1, "nested"),
        ("1" * 100_000, 1, "JSON object"),
        ('{"schema": "patchgate.baseline/12", "new": 1}', 1, "newer patchgate"),
        ('{"schema": "patchgate.baseline/1", "files": {}, "component": 1e999}', 1, "of this number"),
        (b" " * (MAX_BASELINE_BYTES + 1), 1, " 16 MiB"),
        (GOOD.replace('"shaping"', '"\\u001b]0;\\u202e"'), 2, "\\x1b]0;\\u202e"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 40 and value.isprintable() else "…",
)
def test_hostile_bytes_are_a_fault_and_no_traceback(raw: str | bytes, line: int, said: str) -> None:
    found = fault(raw)
    assert said in found.message
    assert found.line == line


def test_random_damage_is_read_or_told_and_never_raises() -> None:
    chooser = random.Random(11)
    for _ in range(3000):
        raw = bytearray(GOOD.encode())
        for _ in range(chooser.randrange(1, 4)):
            position = chooser.randrange(len(raw))
            raw[position : position + chooser.randrange(3)] = chooser.choice(
                [b"", b'"', b"\\", b"{", b"}", b"\n", b"\xff", b"1", b","]
            )
        found = read_baseline(bytes(raw), "shaping")
        if isinstance(found, BaselineFault):
            assert found.line is not None
            assert 1 <= found.line <= bytes(raw).count(b"\n") + 1


def test_each_role_has_its_own_hash_of_names_modes_and_contents() -> None:
    before = hashes(Baseline("shaping", FILES))
    code = RepoPath(b"src/shaping/core.py")
    for other in (
        {**FILES, code: RecordedFile(Role.IMPLEMENTATION, "100644", "2" * 40, SUM)},
        {**FILES, code: RecordedFile(Role.IMPLEMENTATION, "100755", "2" * 40, "b" * 64)},
        {**FILES, RepoPath(b"src/z"): FILES[code]},
    ):
        after = hashes(Baseline("shaping", other))
        assert (after.contract, after.tests) == (before.contract, before.tests)
        assert after.implementation != before.implementation
    assert hashes(Baseline("shaping", {code: FILES[code]})).tests is None


def test_the_hashes_do_not_depend_on_the_object_format() -> None:
    longer = {path: RecordedFile(each.role, each.mode, "f" * 64, each.sha256) for path, each in FILES.items()}
    assert hashes(Baseline("shaping", longer)) == hashes(Baseline("shaping", FILES))
