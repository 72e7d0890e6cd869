"""A sealed file: it gives back what was kept, and nothing that is not exactly that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchgate.policy import sealed_file
from patchgate.policy.sealed_file import SealedFile

BODY = b'{"a":[1]}'


def at(folder: Path, form: str = "patchgate.test/1", most: int = 1000) -> SealedFile:
    return SealedFile(str(folder / "below" / "kept"), form, most)


def test_what_was_kept_comes_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    assert at(tmp_path).load() == {}
    at(tmp_path).store(BODY)
    assert at(tmp_path).load() == {"a": [1]}
    assert os.stat(at(tmp_path).path).st_mode & 0o777 == 0o600
    at(tmp_path).store(b"{}")
    assert at(tmp_path).load() == {}
    assert os.listdir(tmp_path / "below") == ["kept"]


def test_what_was_kept_as_something_else_does_not_count(tmp_path: Path) -> None:
    at(tmp_path).store(BODY)
    assert at(tmp_path, "patchgate.test/2").load() == {}


@pytest.mark.parametrize("name", ["__version__", "RULES_VERSION"])
def test_what_another_version_kept_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    at(tmp_path).store(BODY)
    monkeypatch.setattr(sealed_file, name, "999")
    assert at(tmp_path).load() == {}


def test_what_is_too_long_is_neither_written_nor_read(tmp_path: Path) -> None:
    at(tmp_path).store(BODY)
    size = os.path.getsize(at(tmp_path).path)
    assert at(tmp_path, most=size).load() == {"a": [1]}
    assert at(tmp_path, most=size - 1).load() == {}
    at(tmp_path, most=size).store(b'{"a":[10]}')
    assert at(tmp_path).load() == {"a": [1]}
    at(tmp_path, most=size).store(b'{"a":[2]}')
    assert at(tmp_path).load() == {"a": [2]}


def test_each_byte_counts(tmp_path: Path) -> None:
    file = at(tmp_path)
    file.store(BODY)
    kept = Path(file.path).read_bytes()
    for place in range(len(kept)):
        for damaged in (kept[:place], kept[:place] + b"!" + kept[place + 1 :]):
            Path(file.path).write_bytes(damaged)
            assert file.load() == {}, place
    Path(file.path).write_bytes(kept)
    assert file.load() == {"a": [1]}


def test_a_place_that_cannot_be_read_or_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "below").write_bytes(b"in the way")
    at(tmp_path).store(BODY)
    assert at(tmp_path).load() == {}
    assert (tmp_path / "below").read_bytes() == b"in the way"
