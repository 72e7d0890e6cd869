"""Hostile patches and hostile repositories: each refused with its rule, nothing run, nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.proposals import (
    ABC,
    PERMISSIVE,
    UNENDED,
    addition,
    assert_lands_as_judged,
    change_of,
    check,
    deletion,
    moved,
    refusal,
)
from tests.world import Repo

M = change_of()
PARSE, POLICY = ("parse", "PATCH_PARSE_INVALID"), ("policy", "PATCH_POLICY_DENY")
GIT_CHECK = ("git_check", "PATCH_GIT_CHECK_FAIL")
LINK = addition(b"link", b"/tmp", b"120000", UNENDED)


def quoted(name: bytes) -> bytes:
    """Add a file whose name is written in quotes, as given."""
    return addition(b"Z").replace(b"a/Z", b'"a/%b"' % name).replace(b"b/Z", b'"b/%b"' % name)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": ABC, "b/f": ABC, "dev/null": ABC, "Src/x": ABC, "secret/key": ABC, "runs/x": ABC})
    made.policy("[policy]\ndeny_prefixes = ['runs', 'secret']\n[policy.agent]\nmax_files = 'off'\n")
    return made


UNREADABLE = {
    "--- and +++ name another file": (
        M.replace(b"--- a/f\n+++ b/f", b"--- a/runs/x\n+++ b/runs/x"),
        "invalid-unified-diff",
    ),
    "+++ alone names another file": (M.replace(b"+++ b/f", b"+++ b/g"), "invalid-unified-diff"),
    "rename to under a harmless header": (
        moved(b"f", b"g").replace(b"rename to g", b"rename to runs/g"),
        "invalid-unified-diff",
    ),
    "second section without diff --git": (
        M + M.split(b"\n", 1)[1].replace(b"/f", b"/b/f"),
        "missing-file-header",
    ),
    "header that can be split twice": (
        b"diff --git a/a b/src/b b/a b/src/b\nold mode 100644\nnew mode 100755\n",
        "invalid-unified-diff",
    ),
    "two names without a rename": (M.replace(b"a/f", b"a/b/f"), "invalid-unified-diff"),
    "marker in mid-file": (M.replace(b"+B\n", b"+B\n" + UNENDED), "invalid-unified-diff"),
    "/dev/null without new file mode": (M.replace(b"--- a/f", b"--- /dev/null"), "missing-file-header"),
    "/dev/null without deleted file mode": (M.replace(b"+++ b/f", b"+++ /dev/null"), "missing-file-header"),
    "mode of a folder": (addition(b"new", mode=b"040000"), "invalid-unified-diff"),
    "mode 0": (addition(b"new", mode=b"0"), "invalid-unified-diff"),
    "mode 010644": (addition(b"new", mode=b"010644"), "invalid-unified-diff"),
    "mode 100664": (addition(b"new", mode=b"100664"), "invalid-unified-diff"),
    "file turned into a link": (
        b"diff --git a/f b/f\nold mode 100644\nnew mode 120000\n",
        "invalid-unified-diff",
    ),
    "a path twice": (M + M, "duplicate-section"),
    "two files renamed to one": (moved(b"f", b"new") + moved(b"b/f", b"new"), "duplicate-section"),
    "a swap": (moved(b"f", b"b/f") + moved(b"b/f", b"f"), "duplicate-section"),
    "a chain": (moved(b"f", b"b/f") + moved(b"b/f", b"new"), "duplicate-section"),
    "a rename to itself": (moved(b"f", b"f"), "invalid-unified-diff"),
    "number beyond 64 bits": (M.replace(b"-1,3", b"-99999999999999999999,3"), "range-invalid"),
    "number beyond 32 bits": (M.replace(b"-1,3", b"-1,4294967299"), "range-invalid"),
    "number with a sign": (M.replace(b"-1,3", b"--1,3"), "range-invalid"),
    "number with a leading zero": (M.replace(b"-1,3", b"-01,3"), "range-invalid"),
    "hunk that changes nothing": (M.replace(b"-b\n+B\n", b" b\n"), "invalid-unified-diff"),
    "binary": (
        b"diff --git a/f b/f\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 1\nIcmZQ\n\n",
        "binary-payload",
    ),
    "combined": (b"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n", "combined-diff"),
    "NUL": (M.replace(b"+B", b"+B\0"), "binary-payload"),
    "octal above 377": (quoted(b"a\\777b"), "invalid-unified-diff"),
    "octal NUL": (quoted(b"a\\000b"), "invalid-unified-diff"),
    "unknown escape": (quoted(b"a\\x41b"), "invalid-unified-diff"),
    "needless quotes": (quoted(b"Z"), "invalid-unified-diff"),
    "text behind the closing quote": (quoted(b'Z\\t"x'), "invalid-unified-diff"),
    "path of 100 kB": (addition(b"z" * 100_000), "patch-too-large"),
    "mail": (b"From abc\nSubject: x\n\n---\n" + M, "prose-around-patch"),
    "signature": (M + b"-- \n2.39.5\n", "prose-around-patch"),
    "fence": (b"```diff\n" + M, "prose-around-patch"),
    "byte-order mark": (b"\xef\xbb\xbf" + M, "encoding-unsupported"),
    "UTF-16": (M.decode().encode("utf-16"), "encoding-unsupported"),
    "CR LF in the headers": (M.replace(b"\n", b"\r\n", 3), "carriage-return-in-header"),
    "lost space": (M.replace(b" a\n", b"\n"), "blank-context-line"),
    "cut off": (M[:-1], "newline-missing"),
    "wrong count": (M.replace(b"-1,3", b"-1,2"), "hunk-count-mismatch"),
    "too large a count": (M.replace(b"-1,3", b"-1,4"), "patch-truncated"),
    "hunks missing": (b"diff --git a/f b/f\n--- a/f\n+++ b/f\n", "missing-hunk"),
    "empty": (b"", "not-a-unified-diff"),
    "prose": (b"I did it.\n", "not-a-unified-diff"),
    "mode that lies in the index line": (
        M.replace(b"--- a", b"index 1111111..2222222 100755\n--- a"),
        "effect-mismatch",
    ),
    "old mode that lies": (b"diff --git a/f b/f\nold mode 100755\nnew mode 100644\n", "effect-mismatch"),
    "deleted mode that lies": (
        deletion(b"f", b"a\n-b\n-c", b"100755").replace(b"-1 ", b"-1,3 "),
        "effect-mismatch",
    ),
    "gitlink without a commit": (addition(b"m", b"Subproject commit 12", b"160000"), "effect-mismatch"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_readers_could_disagree_on_is_no_patch(repo: Repo, name: str) -> None:
    patch, rule = UNREADABLE[name]
    stage, code, rules = refusal(check(repo, patch))
    assert (stage, code) == PARSE
    assert rule in rules


@pytest.mark.parametrize(
    ("patch", "rules"),
    [
        (moved(b"f", b"runs/f"), ["deny-prefix"]),
        (moved(b"secret/key", b"key"), ["deny-prefix"]),
        (moved(b"secret/key", b"key", b"copy"), ["deny-prefix"]),
        (addition(b"runs/new"), ["deny-prefix"]),
        (addition(b"RUNS/new"), ["deny-prefix", "path-collision"]),
        (addition(b".GIT/x"), ["path-git-dir"]),
        (addition(b".git./x"), ["path-git-dir"]),
        (addition(b"git~1/x"), ["path-git-dir"]),
        (addition(b"GIT~2"), ["path-git-dir"]),
        (addition(".g\u200cit/x".encode()), ["path-git-dir"]),
        (addition(b".git::$INDEX_ALLOCATION/x"), ["path-colon", "path-git-dir"]),
        (addition(b"a/.git/config"), ["path-git-dir"]),
        (addition(b"../x"), ["path-traversal"]),
        (addition(b"a/../x"), ["path-traversal"]),
        (addition(b"./x"), ["path-traversal"]),
        (addition(b"/etc/x"), ["path-absolute"]),
        (addition(b"a//x"), ["path-empty"]),
        (addition(b"a/x/"), ["path-empty"]),
        (addition(b"C:/x"), ["path-drive-letter"]),
        (addition(b"ab:c"), ["path-colon"]),
        (quoted(b"a\\\\b"), ["path-backslash"]),
        (quoted(b"a\\nb"), ["path-control"]),
        (quoted(b"a\\177b"), ["path-control"]),
        (addition(b"z" * 256), ["path-too-long"]),
        (addition(b"/".join([b"z" * 200] * 21)), ["path-too-long"]),
        (addition(b"F"), ["path-collision"]),
        (addition(b"src/y"), ["path-collision"]),
        (addition(b"q") + addition(b"Q"), ["path-collision", "path-collision"]),
        (addition("é".encode()) + addition("e\u0301".encode()), ["path-collision", "path-collision"]),
        (addition(b"f/x"), ["path-symlink"]),
        (LINK, ["symlink"]),
        (LINK + addition(b"link/x"), ["path-symlink", "symlink"]),
        (addition(b"link/x") + LINK, ["path-symlink", "symlink"]),
    ],
)
def test_what_names_a_forbidden_place_is_refused_by_policy(
    repo: Repo, patch: bytes, rules: list[str]
) -> None:
    stage, code, found = refusal(check(repo, patch))
    assert (stage, code) == POLICY
    assert [rule for rule in found if rule != "target-missing"] == rules


@pytest.mark.parametrize(
    ("patch", "rule"),
    [
        (addition(b"b"), "already-exists"),
        (addition(b"f"), "already-exists"),
        (moved(b"f", b"b"), "already-exists"),
        (moved(b"f", b"b/f", b"copy"), "already-exists"),
        (change_of(b"b"), "target-missing"),
        (change_of(b"nowhere"), "target-missing"),
        (moved(b"nowhere", b"new"), "target-missing"),
        (addition(b"new") + addition(b"new/x"), "git-refused"),
        (addition(b"new/x") + addition(b"new"), "git-refused"),
        (b"diff --git a/f b/f\ndeleted file mode 100644\n", "git-refused"),
        (deletion(b"f", b"a"), "hunk-mismatch"),
    ],
)
def test_what_git_would_not_make_is_refused_by_its_check(repo: Repo, patch: bytes, rule: str) -> None:
    stage, code, rules = refusal(check(repo, patch))
    assert (stage, code) == GIT_CHECK
    assert rules == [rule]


@pytest.mark.parametrize(
    "patch",
    [
        change_of(b"b/f"),
        change_of(b"dev/null"),
        change_of(new=b"++ b/x"),
        addition(b"runs_evil"),
        addition(b"meta/runs/x"),
        moved(b"f", b"f_/x/y"),
        moved(b"f", b"F"),
        b"\n\n" + M,
        addition(b"-rf"),
        addition(b"--help"),
        addition(b"f,v"),
        addition(b"new", b"\xff\x80"),
    ],
)
def test_what_only_looks_hostile_is_accepted_and_lands_as_judged(repo: Repo, patch: bytes) -> None:
    assert_lands_as_judged(repo, patch)


def test_a_deleted_line_that_begins_with_two_dashes_is_no_header(repo: Repo) -> None:
    repo.commit({"f": "a\n-- b/x\nc\n"})
    patch = change_of(old=b"-- b/x", new=b"++ b/runs/x")
    assert list(assert_lands_as_judged(repo, patch).files) == ["f"]


def test_a_link_on_disk_tracked_or_not_is_never_written_through(repo: Repo) -> None:
    """`git apply --index` wrote outside the repository through an untracked one."""
    repo.policy(PERMISSIVE)
    outside = repo.path.parent / "outside"
    outside.mkdir()
    repo.link("free", str(outside))
    for arguments in ((), ("tracked",)):
        if arguments:
            repo.commit()
        assert refusal(check(repo, addition(b"free/x")))[2] == ["path-symlink"]
        assert refusal(check(repo, addition(b"free/deep/x")))[2] == ["path-symlink"]
    removed = deletion(b"free", os.fsencode(outside), b"120000", UNENDED)
    assert refusal(check(repo, removed + addition(b"free/x")))[2] == ["path-symlink"]
    assert refusal(check(repo, LINK + addition(b"link/x")))[2] == ["path-symlink"]
    assert list(outside.iterdir()) == []


def test_a_file_that_became_a_link_on_disk_is_met_as_a_link(repo: Repo) -> None:
    repo.write("target", ABC)
    (repo.path / "f").unlink()
    repo.link("f", "target")
    assert "hunk-mismatch" in refusal(check(repo, M))[2]


def test_a_link_is_a_link_although_the_section_has_no_modes(repo: Repo) -> None:
    repo.link("link", "f")
    repo.commit()
    patch = b"diff --git a/link b/link\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-f\n%b+/etc\n%b" % (
        UNENDED,
        UNENDED,
    )
    assert refusal(check(repo, patch))[2] == ["symlink"]
    lying = patch.replace(b"--- a", b"index 1111111..2222222 100644\n--- a")
    assert refusal(check(repo, lying))[2] == ["effect-mismatch"]


def test_nothing_of_the_index_disappears_unseen_where_it_is_not_on_disk(repo: Repo) -> None:
    """Measured: a new file took the place of a submodule, a folder, a file, and the report did not say so."""
    repo.gitlink("module")
    repo.git("commit", "-q", "-m", "Add a module")
    assert refusal(check(repo, addition(b"module/x")))[2] == ["path-symlink"]
    (repo.path / "f").unlink()
    assert refusal(check(repo, addition(b"f/x")))[2] == ["path-symlink"]
    (repo.path / "Src" / "x").unlink()
    (repo.path / "Src").rmdir()
    assert refusal(check(repo, addition(b"Src")))[2] == ["already-exists"]
    repo.git("update-index", "--skip-worktree", "b/f")
    (repo.path / "b" / "f").unlink()
    assert refusal(check(repo, addition(b"b/f")))[2] == ["already-exists"]


def test_a_submodule_or_a_nested_repository_is_not_entered(repo: Repo) -> None:
    (repo.path / "nested").mkdir()
    repo.git("init", "-q", "nested")
    assert refusal(check(repo, addition(b"nested/x")))[2] == ["path-symlink"]


def test_no_hook_monitor_or_driver_of_the_repository_runs(repo: Repo) -> None:
    repo.commit({".gitattributes": "f diff=x merge=x\n"})
    trap = repo.path.parent / "ran"
    script = repo.write(".git/trap", f"#!/bin/sh\necho x >> '{trap}'\ncat\n", executable=True)
    for hook in ("post-index-change", "reference-transaction", "applypatch-msg", "pre-applypatch"):
        repo.write(f".git/hooks/{hook}", script.read_bytes(), executable=True)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "diff.x.textconv",
        "diff.x.command",
        "merge.x.driver",
        "gpg.program",
        "alias.apply",
    ):
        repo.git("config", key, str(script))
    repo.write(".git/info/attributes", "* diff=x merge=x\n")
    trap.unlink(missing_ok=True)
    for patch in (M, change_of(old=b"nope"), addition(b"new")):
        check(repo, patch)
        check(repo, patch, "--base", "HEAD")
        check(repo, patch, "--base", "HEAD~1")
    assert not trap.exists()


@pytest.mark.parametrize(
    "env",
    [
        {"GIT_EXTERNAL_DIFF": "/bin/false"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true"},
        {"GIT_CONFIG_PARAMETERS": "'apply.whitespace'='error'"},
        {"GIT_OBJECT_DIRECTORY": "/nowhere"},
        {"GIT_ALTERNATE_OBJECT_DIRECTORIES": "/nowhere"},
        {"GIT_EXEC_PATH": "/nowhere"},
        {"GIT_NAMESPACE": "x"},
        {"GIT_LITERAL_PATHSPECS": "x"},
        {"GIT_ATTR_SOURCE": "nowhere"},
        {"GIT_DEFAULT_HASH": "sha256"},
    ],
    ids=min,
)
def test_the_callers_environment_changes_nothing(repo: Repo, env: dict[str, str]) -> None:
    plain, hostile = check(repo, M), check(repo, M, **env)
    assert (hostile.code, hostile.change["id"]) == (0, plain.change["id"])


def test_a_missing_blob_is_undecided_and_fetches_nothing(repo: Repo) -> None:
    trap = repo.path.parent / "ran"
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {trap}",
        "protocol.ext.allow": "always",
    }.items():
        repo.git("config", key, value)
    oid = repo.ask("rev-parse", "HEAD:f")
    (repo.path / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    answer = check(repo, M, "--base", "HEAD")
    assert (answer.code, answer.error["kind"]) == (3, "undecided")
    assert not trap.exists()


def test_many_sections_hunks_and_misfits_are_judged(repo: Repo) -> None:
    repo.commit({"f": "".join(f"line {number}\n" for number in range(4_000))})
    sections = b"".join(addition(b"n%d" % number) for number in range(2_000))
    assert check(repo, sections, "--exit-zero").report["changes"][0]["stats"]["files"] == 2_000
    head = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    hunk = b"@@ -%d,3 +%d,3 @@\n line %d\n-line %d\n+LINE\n line %d\n"
    places = range(0, 3_990, 4)
    fitting = head + b"".join(hunk % (n + 1, n + 1, n, n + 1, n + 2) for n in places)
    assert check(repo, fitting).errors == ["max-added-lines"]
    wrong = refusal(check(repo, fitting.replace(b"-line", b"-nope")))[2]
    assert set(wrong) == {"hunk-mismatch", "max-added-lines"}
    assert len(wrong) <= 21
