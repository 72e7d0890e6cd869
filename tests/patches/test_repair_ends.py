"""Where a hunk without numbers ends, in a fence or not; and which fault is named when there is no repair."""

from __future__ import annotations

import pytest

from patchgate.git.model import REGULAR
from patchgate.git.path import RepoPath
from patchgate.patches.patch_model import Fault
from patchgate.patches.patch_repair import repair_patch
from patchgate.patches.planning import Preimage
from tests.patches.format_world import read

FILES = {"a.txt": b"".join(b"line %d\n" % number for number in range(1, 10))}
GIT, NAMES = b"diff --git a/a.txt b/a.txt\n", b"--- a/a.txt\n+++ b/a.txt\n"
AT_THE_END = b"@@\n line 7\n+new\n line 8\n line 9\n"
INSIDE = b"@@\n line 3\n+new\n line 4\n line 5\n"


def blocking(raw: bytes) -> Fault:
    def lookup(path: RepoPath) -> Preimage | None:
        return Preimage(REGULAR, FILES["a.txt"]) if path.raw == b"a.txt" else None

    found = repair_patch(raw, lookup)
    assert isinstance(found, Fault)
    return found


@pytest.mark.parametrize("headers", [GIT + NAMES, NAMES])
@pytest.mark.parametrize("fence", [b"%b", b"```diff\n%b```\n"])
def test_a_hunk_without_numbers_that_reaches_the_end_of_its_file_is_whole(
    headers: bytes, fence: bytes
) -> None:
    after = FILES["a.txt"].replace(b"line 8\n", b"new\nline 8\n")
    assert read(fence % (headers + AT_THE_END), "patch", FILES, repair=True) == {"a.txt": after}


def test_a_hunk_without_numbers_and_with_little_context_may_be_cut() -> None:
    assert read(GIT + NAMES + INSIDE, "patch", FILES, repair=True) == ["range-invalid"]


@pytest.mark.parametrize(("above", "line"), [(b"", 3), (b"Here it is:\n\n", 5)])
def test_the_fault_without_a_repair_is_named_and_not_one_that_has_a_repair(above: bytes, line: int) -> None:
    fault = blocking(above + NAMES + INSIDE)
    assert (fault.rule, fault.line, fault.fix) == ("range-invalid", line, None)
