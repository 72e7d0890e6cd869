"""An index that is written without git has what git reads from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.git.small_index import small_index
from tests.amount import often
from tests.world import Repo

NAMES = st.text("abcXY.-_ ", min_size=1, max_size=12).filter(lambda name: name.strip(". "))
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/".join(names).encode())
MODES = st.sampled_from(["100644", "100755", "120000"])


def listed(repo: Repo, content: bytes) -> bytes:
    """Let git list an index."""
    place = Path(repo.git_dir, "small-index")
    place.write_bytes(content)
    env = repo.env | {"GIT_INDEX_FILE": str(place)}
    argv = ["git", "ls-files", "--stage", "-z"]
    return subprocess.run(argv, cwd=repo.path, env=env, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    return Repo.create(tmp_path_factory.mktemp("index"))


@settings(max_examples=often(200), deadline=None)
@given(st.dictionaries(PATHS, MODES, min_size=1, max_size=6))
def test_git_lists_what_was_written(repo: Repo, modes: dict[bytes, str]) -> None:
    paths = [path for path in modes if not any(each.startswith(path + b"/") for each in modes)]
    entries = {path: (modes[path], f"{number + 1:040x}") for number, path in enumerate(paths)}
    expected = b"".join(
        b"%s %s 0\t%s\0" % (mode.encode(), oid.encode(), path)
        for path, (mode, oid) in sorted(entries.items())
    )
    assert listed(repo, small_index(entries)) == expected


def test_a_path_of_any_length_and_ids_of_sha256_fit(repo: Repo, tmp_path: Path) -> None:
    for length in (*range(1, 18), 200, 0xFFE, 0xFFF, 0x1001):
        path = (b"d/" * (length // 2) + b"name")[-length:].lstrip(b"/")
        assert path in listed(repo, small_index({path: ("100644", "1" * 40)}))
    other = Repo.create(tmp_path, "--object-format=sha256")
    assert listed(other, small_index({b"a": ("100644", "1" * 64)})) == b"100644 " + b"1" * 64 + b" 0\ta\0"
