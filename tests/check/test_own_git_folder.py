"""Git's own folder may lie in the working tree under another name: nothing of a patch lands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proposals import PERMISSIVE, addition
from tests.world import Repo


@pytest.mark.parametrize("name", ["info/attributes", "hooks/pre-commit", "new/deep/file"])
@pytest.mark.parametrize("command", [("check", "--patch", "-"), ("apply", "-")])
def test_a_patch_into_gits_own_folder_of_another_name_is_refused(
    tmp_path: Path, name: str, command: tuple[str, ...]
) -> None:
    repo = Repo.create(tmp_path, "--separate-git-dir=meta")
    (repo.path / "meta/info/exclude").write_text("meta\n", encoding="utf-8")
    repo.policy(PERMISSIVE)
    patch = addition(f"meta/{name}".encode(), mode=b"100755")
    answer = repo.run(*command, "--format", "json", stdin=patch)
    assert (answer.code, answer.errors) == (1, ["path-symlink"])
    assert not (repo.path / "meta" / name).exists()
