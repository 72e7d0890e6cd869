"""git begins with a large patch before it is read in full: nothing of a verdict depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import open_repository
from patchgate.patches import dry_run
from patchgate.patches.check_patch import check_patch
from patchgate.patches.git_apply import GitApply
from patchgate.patches.patch_headers import glance_at_names
from patchgate.report.json import document
from tests.patches.test_patch_attacks import UNREADABLE
from tests.proposals import ABC, PERMISSIVE, UNENDED, addition, change_of, deletion, moved
from tests.world import Repo

pytestmark = pytest.mark.turns(6)

M = change_of()
GITLINK = (
    b"diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit "
    + b"1" * 40
    + b"\n"
)
PATCHES: Mapping[str, bytes] = {
    "four kinds of sections": M + addition(b"n/w") + deletion(b"x") + moved(b"g", b"d/g"),
    "a file below a file": M + addition(b"x/below"),
    "a file below a file that is deleted": deletion(b"x") + addition(b"x/below"),
    "a file where a folder is": addition(b"d"),
    "a file where a folder was emptied": deletion(b"d/only") + addition(b"d"),
    "a rename onto a file": moved(b"g", b"x"),
    "a rename onto a file that is deleted": deletion(b"x") + moved(b"g", b"x"),
    "names that are exchanged": moved(b"g", b"x") + moved(b"x", b"g"),
    "a copy of a file that is not changed": moved(b"g", b"copy", b"copy") + M,
    "a copy of a file that is renamed too": moved(b"g", b"copy", b"copy") + moved(b"g", b"other"),
    "a mode": b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
    "a mode that the file has": b"diff --git a/f b/f\nold mode 100755\nnew mode 100644\n",
    "a link, and a file below it": addition(b"l", b"d", b"120000", UNENDED) + addition(b"l/f"),
    "a submodule": GITLINK,
    "a forbidden name": M + addition(b".git/hooks/pre-commit"),
    "a name twice": M + M,
    "a file that is not there": change_of(b"absent"),
    "another text": change_of(old=b"q"),
    "lines that end in CR LF": M.replace(b"\n", b"\r\n"),
    "no last newline": M[:-1],
    "prose below": M + b"That is all.\n",
    "a policy": addition(b"patchgate.toml", b"[policy]"),
    **{name: raw for name, (raw, _) in UNREADABLE.items()},
}


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    made = Repo.create(tmp_path_factory.mktemp("early"))
    made.commit({"f": ABC, "g": ABC, "x": "x\n", "d/only": "x\n", "README": "text\n", "p.toml": PERMISSIVE})
    return made


@pytest.mark.parametrize("name", PATCHES)
def test_a_verdict_is_the_same_where_git_began_early(
    repo: Repo, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = open_repository(repo.env, str(repo.path))
    asked = CheckOptions(in_full=True)

    def report(size: int, base: str | None) -> object:
        monkeypatch.setattr(dry_run, "_LARGE", size)
        return document(check_patch(repository, PATCHES[name], asked, base=base))

    for base in (None, "HEAD"):
        assert report(0, base) == report(1 << 60, base)


def test_git_begins_early_with_an_ordinary_patch_and_is_ended_with_one_that_cannot_be_read(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = open_repository(repo.env, str(repo.path))
    monkeypatch.setattr(dry_run, "_LARGE", 0)
    began: list[GitApply] = []
    ended: list[GitApply] = []

    class Recorder(GitApply):
        """Remembers what was started, and what was ended."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            began.append(self)

        def end(self) -> None:
            super().end()
            ended.append(self)

    monkeypatch.setattr(dry_run, "GitApply", Recorder)
    assert check_patch(repository, M, CheckOptions()).verdict == "accepted"
    assert began == ended
    assert len(began) == 1
    assert check_patch(repository, M + b"That is all.\n", CheckOptions()).verdict == "rejected"
    assert began == ended
    assert len(began) == 2


def test_the_files_of_a_patch_are_counted_while_they_are_planned_and_read(tmp_path: Path) -> None:
    made = Repo.create(tmp_path)
    made.commit({f"many/{number}": ABC for number in range(150)})
    patch = b"".join(change_of(b"many/%d" % number) for number in range(150))
    seen: list[tuple[int, int]] = []

    def counted(done: int, total: int) -> None:
        seen.append((done, total))

    asked = CheckOptions(counted=counted, in_full=True)
    check_patch(open_repository(made.env, str(made.path)), patch, asked)
    assert seen == [(0, 150), (50, 150), (75, 150), (125, 150)]


def test_a_glance_at_a_patch_whose_lines_end_in_cr_lf_reads_no_names() -> None:
    assert glance_at_names(M.replace(b"\n", b"\r\n")) is None
