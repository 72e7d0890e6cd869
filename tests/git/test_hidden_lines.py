"""No attribute, setting or size hides what a change holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchgate.git import binary_files, objects
from tests.world import Repo

pytestmark = pytest.mark.turns(3)

SECRET = "key = 'AKIA" + "QYLPMN5HHHFPZQXW'\n"
AGENT = ("--profile", "agent")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n", "b.bin": b"\0\1\2"}, "First")
    return made


def both(repo: Repo, *arguments: str) -> list[tuple[list[str], int | None]]:
    """Judge the staged change, then commit it and judge the commit; give errors and added lines of a.py."""
    answers = [repo.check(*arguments)]
    repo.git("commit", "-q", "-m", "x")
    answers.append(repo.check("HEAD", *arguments))
    assert len({answer.change["id"] for answer in answers}) == 1
    return [(sorted(answer.errors), answer.files["a.py"]["added_lines"]) for answer in answers]


@pytest.mark.parametrize("text", ["a.py -diff\n", "a.py binary\n", "* -diff\n", "a.py diff=none\n"])
@pytest.mark.parametrize("place", [".gitattributes", "staged", "info"])
def test_attributes_hide_no_lines(repo: Repo, text: str, place: str) -> None:
    repo.git("config", "diff.none.binary", "true")
    repo.stage({"a.py": "one\n" + SECRET + "x\n" * 490})
    if place == "staged":
        repo.stage({".gitattributes": text})
    elif place == "info":
        repo.write(".git/info/attributes", text)
    else:
        repo.write(".gitattributes", text)
    assert both(repo) == [(["secret"], 491), (["secret"], 491)]


@pytest.mark.parametrize("text", ["b.bin diff\n", "* diff\n", "b.bin diff=text\n"])
@pytest.mark.parametrize("place", ["staged", "info"])
def test_attributes_do_not_make_a_binary_file_text(repo: Repo, text: str, place: str) -> None:
    repo.git("config", "diff.text.binary", "false")
    if place == "staged":
        repo.commit({".gitattributes": text})
    else:
        repo.write(".git/info/attributes", text)
    repo.stage({"b.bin": b"\0\1\2\n\n\n", "new.bin": b"\0"})
    staged = repo.check(*AGENT)
    repo.git("commit", "-q", "-m", "x")
    for answer in (staged, repo.check("HEAD", *AGENT)):
        assert answer.errors == ["deny-class", "deny-class"]
        assert answer.files["b.bin"]["binary"] is True
        assert answer.files["b.bin"]["added_lines"] is None


def test_a_binary_file_that_becomes_text_is_read(repo: Repo) -> None:
    repo.stage({"b.bin": "x\n" + SECRET})
    staged = repo.check()
    repo.git("commit", "-q", "-m", "x")
    for answer in (staged, repo.check("HEAD"), repo.check("HEAD~1..HEAD")):
        assert answer.errors == ["secret"]
        assert [finding["line"] for finding in answer.findings] == [2]


def test_a_symlink_that_becomes_a_file_is_read(repo: Repo) -> None:
    repo.link("l", "a.py")
    repo.commit()
    (repo.path / "l").unlink()
    repo.stage({"l": SECRET})
    assert repo.check().errors == ["secret"]


def test_a_gitlink_that_a_tracked_setting_ignores_is_seen(repo: Repo) -> None:
    repo.commit({".gitmodules": '[submodule "m"]\n\tpath = m\n\turl = ./m\n\tignore = all\n'})
    repo.git("config", "submodule.m.ignore", "all")
    repo.gitlink("m", "1" * 40)
    answer = repo.check()
    assert list(answer.files) == ["m"]
    assert answer.errors == ["gitlink"]
    repo.git("commit", "-q", "-m", "x")
    repo.gitlink("m", "2" * 40)
    assert list(repo.check().files) == ["m"]
    assert repo.check("HEAD").errors == ["gitlink"]


@pytest.mark.sweep(10)
@pytest.mark.parametrize(
    "setting",
    [
        "diff.external=false",
        "diff.noprefix=true",
        "diff.mnemonicPrefix=true",
        "diff.renames=copies",
        "diff.algorithm=histogram",
        "diff.context=9",
        "diff.interHunkContext=9",
        "diff.indentHeuristic=true",
        "diff.orderFile=order",
        "diff.relative=true",
        "diff.submodule=log",
        "diff.ignoreSubmodules=all",
        "diff.suppressBlankEmpty=true",
        "diff.wordRegex=.",
        "diff.colorMoved=zebra",
        "diff.srcPrefix=x",
        "color.ui=always",
        "color.diff=always",
        "core.quotePath=false",
        "core.abbrev=4",
        "core.bigFileThreshold=1",
        "core.attributesFile=attributes",
        "core.autocrlf=true",
        "core.fsmonitor=false",
        "core.excludesFile=everything",
        "core.pager=false",
        "log.showSignature=true",
        "log.showRoot=false",
        "format.pretty=raw",
        "i18n.logOutputEncoding=UTF-16",
        "trailer.separators=#",
        "core.commentChar=P",
        "diff.none.binary=true",
        "diff.none.textconv=false",
        "diff.none.command=false",
        "submodule.recurse=true",
        "uploadpack.allowFilter=true",
        # Of newer git: older ones do not know these.
        "attr.tree=HEAD",
        "core.commentString=Patchgate-",
        "core.maxTreeDepth=1",
        "core.worktree=..",
        "diff.dstPrefix=x",
        "diff.none.algorithm=patience",
        "diff.none.xfuncname=(.*)",
        "diff.trustExitCode=true",
        "feature.experimental=true",
        "feature.manyFiles=true",
        "index.skipHash=true",
        "log.diffMerges=off",
        "merge.conflictStyle=zdiff3",
        "safe.bareRepository=explicit",
        "transfer.hideRefs=refs/heads",
    ],
)
def test_no_setting_changes_what_is_seen(repo: Repo, setting: str) -> None:
    repo.write("everything", "*\n")
    repo.write("attributes", "* -diff\n")
    repo.write("order", "*.txt\n")
    repo.commit({".gitattributes": "*.txt diff=none\n"})
    repo.commit({"a.py": "one\n" + SECRET, "c.txt": "text\n \nmore\n"}, "Do\n\nPatchgate-Intent: i1")
    plain = repo.check("HEAD~2..HEAD").changes
    repo.git("reset", "-q", "--soft", "HEAD~1")
    staged = repo.check().changes
    key, _, value = setting.partition("=")
    repo.git("config", key, value)
    assert repo.check().changes == staged
    repo.git("reset", "-q", "--soft", "HEAD@{1}")
    again = repo.check("HEAD~2..HEAD").changes
    assert again == plain
    assert [change["profile"] for change in again] == ["commit", "agent"]


def test_a_line_of_five_megabytes_is_read(repo: Repo) -> None:
    repo.stage({"a.py": "one\n" + "x" * 5_000_000 + " " + SECRET + "end\n"})
    assert both(repo) == [(["secret"], 2), (["secret"], 2)]


def test_a_file_too_large_to_hold_is_read_in_pieces(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_files, "BIG_FILE", 1 << 20)
    monkeypatch.setattr(objects, "BIG_FILE", 1 << 20)
    lines = ["x" * 99] * 30_000
    lines[29_990] = SECRET.strip()
    # An attribute stands for git's own limit: above it git says binary.
    repo.commit({".gitattributes": "*.py -diff\n"})
    repo.stage({"a.py": "\n".join(lines) + "\nlast without an end"})
    answer = repo.check()
    assert answer.errors == ["secret"]
    assert [each["line"] for each in answer.findings if each["rule"] == "secret"] == [29_991]
    assert answer.files["a.py"]["added_lines"] == 30_001


def test_a_secret_in_a_line_that_no_window_holds_is_found(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary_files, "BIG_FILE", 1 << 20)
    repo.commit({".gitattributes": "*.py -diff\n"})
    at_a_border = (1 << 20) - 20
    repo.stage({"a.py": "x" * at_a_border + " " + SECRET.strip() + "y " * (3 << 20)})
    answer = repo.check()
    assert set(answer.errors) == {"secret"}
    assert answer.files["a.py"]["added_lines"] == 1


def test_a_text_above_gits_own_limit_is_read(repo: Repo) -> None:
    repo.stage({"a.py": "x" * 99 + "\n" + ("y" * 99 + "\n") * 340_000 + SECRET})
    answer = repo.check("--policy-from", "HEAD")
    assert answer.errors == ["secret"]
    assert answer.files["a.py"]["added_lines"] == 340_002
    assert answer.files["a.py"]["binary"] is False


def test_a_binary_file_above_gits_own_limit_is_binary(repo: Repo) -> None:
    repo.stage({"a.py": b"\0" + b"y" * 33_600_000})
    answer = repo.check(*AGENT)
    assert "deny-class" in answer.errors
    assert answer.files["a.py"]["binary"] is True


def test_a_nul_after_the_first_eight_thousand_bytes_leaves_a_file_text(repo: Repo) -> None:
    repo.stage({"a.py": b"x\n" * 4000 + b"\0\n" + SECRET.encode()})
    assert both(repo) == [(["secret"], 4002), (["secret"], 4002)]
