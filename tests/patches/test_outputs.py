"""What models write, in `tests/corpus/outputs/`: each output is understood exactly, or it is refused.

`NAME.out` is what was sent, for the files in `base.json`. `NAME.expected` has the `input` it is sent as and
either `files`, what becomes of each changed one (null: removed), or `rule`, one of those that refuse it.
`without_repair` is a rule that refuses a diff that is sent without `--repair`.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from patchgate.check.policy_lookup import CheckOptions
from patchgate.git.repository import Repository, open_repository
from patchgate.patches.check_patch import judge_patch
from patchgate.patches.proposals import PATCH, kind_of
from patchgate.report.rules import Level
from tests.patches.patch_world import CORPUS
from tests.world import Repo

FOLDER = CORPUS / "outputs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.out"))
BASE = json.loads((FOLDER / "base.json").read_text("ascii"))
EXECUTABLE = "bin/serve.sh"
POLICY = """[apply]
inputs = ["diff", "envelope", "search-replace", "edits", "files", "auto"]
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    repo = Repo.create(tmp_path_factory.mktemp("outputs"))
    for name, text in BASE.items():
        repo.write(name, text.encode("utf-8"), executable=name == EXECUTABLE)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "add the shop")
    repo.policy(POLICY)
    return open_repository(repo.env, str(repo.path))


def judged(
    repository: Repository, raw: bytes, kind: str, *, repair: bool
) -> tuple[dict[str, str | None], list[str], list[str]]:
    """Judge an output: the changed files as they would be, the rules of its errors, those of its notes."""
    made: dict[str, str | None] = {}
    with judge_patch(repository, raw, CheckOptions(), kind=kind, repair=repair) as found:
        verdict = found.verdict
        errors = [each.rule for each in verdict.findings if each.level is Level.ERROR]
        notes = [each.rule for each in verdict.findings if each.level is Level.NOTE]
        assert (verdict.verdict == "accepted") is not bool(errors)
        for file in verdict.change.files if not errors else ():
            content = None if file.new is None else found.objects.read(file.new.oid, 1 << 20)
            made[os.fsdecode(file.path.raw)] = None if content is None else content.decode("utf-8")
            if file.old is not None and file.new is not None:
                assert file.new.mode == file.old.mode
    return made, errors, notes


def expectation(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.expected").read_text("ascii"))
    return found


def rules_of(expected: dict[str, Any]) -> set[str]:
    rule = expected["rule"]
    return {rule} if isinstance(rule, str) else set(rule)


def kind_sent(expected: dict[str, Any]) -> str:
    return "edits" if "option" in expected else kind_of(expected.get("input", "diff"))


@pytest.mark.parametrize("name", NAMES)
def test_an_output_makes_exactly_what_it_says_or_is_refused(repository: Repository, name: str) -> None:
    raw, expected = (FOLDER / f"{name}.out").read_bytes(), expectation(name)
    made, errors, notes = judged(repository, raw, kind_sent(expected), repair=True)
    if "rule" in expected:
        assert rules_of(expected).intersection(errors), errors
        assert made == {}
        return
    assert errors == []
    assert made == expected["files"]
    is_repaired = "without_repair" in expected
    assert ("patch-repaired" in notes) is (is_repaired or name == "auto-diff-in-a-fence")


@pytest.mark.parametrize("name", [name for name in NAMES if "without_repair" in expectation(name)])
def test_a_fault_is_repaired_only_if_that_is_asked_for(repository: Repository, name: str) -> None:
    made, errors, notes = judged(repository, (FOLDER / f"{name}.out").read_bytes(), PATCH, repair=False)
    assert expectation(name)["without_repair"] in errors
    assert (made, notes) == ({}, [])


# The kinds of outputs that a study of coding agents collected, by their names here; the second group used to
# be refused although each of them is whole and has one meaning.
REPORTED_WHOLE = """
    diff-good diff-wrong-line-numbers diff-index-invented diff-unicode-name diff-rename edits-structured
    fence-and-prose fence-diff count-too-small-ends-in-context count-too-large-followed-by-file no-git-line
    no-git-line-no-prefix no-final-newline-context crlf-whole-patch blank-context new-file-without-mode
    new-file-bare deletion-without-mode mail-format-patch moved-to-line-one envelope-update blocks-one
    strings-one strings-tags-of-a-call files-one numbers-missing git-line-without-prefixes
    two-diffs-of-one-file strings-list
"""
REPORTED_REFUSED = """
    smart-quotes-in-context html-escapes-in-context context-invented context-reindented tabs-became-spaces
    symlink binary absolute-path no-trailing-context empty missing-context-line edits-structured-two-files
    truncated-after-a-line truncated-new-file elided-context elided-without-sign
"""


def test_no_reported_output_that_is_whole_is_refused_and_none_that_is_cut_is_accepted() -> None:
    assert all("files" in expectation(name) for name in REPORTED_WHOLE.split())
    assert all("rule" in expectation(name) for name in REPORTED_REFUSED.split())
    cut = [name for name in NAMES if "truncated" in name or "elided" in name or "open-fence" in name]
    assert all("rule" in expectation(name) for name in cut)


def test_every_output_has_what_must_come_out_of_it() -> None:
    assert len(NAMES) >= 200
    assert {path.stem for path in FOLDER.glob("*.expected")} == set(NAMES)
