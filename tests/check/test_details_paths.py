"""Paths in the details of findings: exact in JSON as everywhere else, and taken back by `apply --only`."""

from __future__ import annotations

import json
import os
import shlex
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from patchgate.git.path import RepoPath
from patchgate.git.quoting import quote, unquote
from patchgate.report.schema import json_schema
from tests.apply.test_apply import apply, command
from tests.proposals import addition
from tests.world import Answer, Repo

EXACT = ["ü.txt", 'a"b', "back\\slash", '"whole"', '"']
NOT_EXACT = [b"tab\there", b"lone\xff", b"c1\xc2\x85", "bidi\u202e".encode()]
NAMES = sorted([*(text.encode() for text in EXACT), *NOT_EXACT])
_FOR_PEOPLE = {"message", "hint", "reason"}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo.create(tmp_path)
    made.commit({"f": "1\n"})
    return made


def quoted_texts(value: Any, key: str = "") -> list[str]:
    """Collect what git quoted in a document and has no bytes beside it; sentences for people aside."""
    if isinstance(value, dict):
        named = {name: each for name, each in value.items() if f"{name}_b64" not in value}
        return [text for name, each in named.items() for text in quoted_texts(each, name)]
    if isinstance(value, list):
        return [text for each in value for text in quoted_texts(each, key)]
    if key in _FOR_PEOPLE or not isinstance(value, str) or not value.startswith('"'):
        return []
    raw = unquote(value.encode())
    return [value] if raw is not None and RepoPath(raw).quoted == value else []


def bytes_of(texts: Any, encoded: Any = None) -> Any:
    """Read paths back, however deep their lists lie; null says that all below it is exact."""
    if isinstance(texts, str):
        return texts.encode() if encoded is None else b64decode(encoded)
    beside = [None] * len(texts) if encoded is None else encoded
    return [bytes_of(text, raw) for text, raw in zip(texts, beside, strict=True)]


def told(answer: Answer, rule: str, key: str) -> Any:
    """Read what a rule's first finding names; the report fits its schema, and quotes nothing."""
    Draft202012Validator(json_schema()).validate(answer.report)
    assert quoted_texts(answer.report) == []
    details = next(each["details"] for each in answer.findings if each["rule"] == rule)
    return bytes_of(details[key], details.get(f"{key}_b64"))


def patch_of(*names: bytes) -> bytes:
    """Add files of odd names."""
    sections = []
    for name in names:
        old, new = quote(b"a/" + name, high=True), quote(b"b/" + name, high=True)
        sections.append(
            b"diff --git %b %b\nnew file mode 100644\n--- /dev/null\n+++ %b\n@@ -0,0 +1 @@\n+x\n"
            % (old, new, new)
        )
    return b"".join(sections)


def test_a_split_and_what_is_too_large_are_exact(repo: Repo) -> None:
    repo.policy("[policy.agent]\nmax_files = 2\nmax_added_lines = 5\n")
    for name in NAMES:
        repo.write(name, "1\n")
    repo.write(b"sub/\xff", "1\n" * 6)
    repo.git("add", "-A")
    answer = repo.check("--profile", "agent")
    split = told(answer, "max-files", "split")
    assert sorted(name for part in split for name in part) == NAMES
    assert told(answer, "max-files", "too_large") == [b"sub/\xff"]


def test_a_split_of_exact_names_has_no_bytes_beside(repo: Repo) -> None:
    repo.policy("[policy.agent]\nmax_files = 2\n")
    repo.stage(dict.fromkeys(EXACT, "1\n"))
    answer = repo.check("--profile", "agent")
    details = answer.findings[0]["details"]
    assert sorted(name for part in details["split"] for name in part) == sorted(EXACT)
    assert not [key for key in details if key.endswith("_b64")]


def test_the_files_beside_a_control_file_are_exact(repo: Repo) -> None:
    repo.policy("[policy]\n")
    repo.write("patchgate.toml", "[content]\n")
    for name in NAMES:
        repo.write(name, "1\n")
    repo.git("add", "-A")
    assert told(repo.check(), "policy-change-not-alone", "split") == [[b"patchgate.toml"], NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_that_another_one_collides_with_is_exact(repo: Repo, name: bytes) -> None:
    repo.commit({os.fsdecode(b"x" + name): "1\n"})
    repo.write(b"X" + name, "1\n")
    repo.git("add", "-A")
    assert told(repo.check(), "path-collision", "actual") == b"x" + name


@pytest.mark.parametrize("name", sorted({*NAMES} - {b"tab\there", b"back\\slash"}))
def test_the_link_that_a_path_lies_behind_is_exact(repo: Repo, name: bytes) -> None:
    os.symlink("elsewhere", os.path.join(os.fsencode(repo.path), name))
    repo.commit()
    (repo.path.parent / "patch").write_bytes(patch_of(name + b"/f"))
    answer = repo.check("--patch", str(repo.path.parent / "patch"))
    assert told(answer, "path-symlink", "actual") == name


def test_the_files_of_edits_that_name_several_are_exact(repo: Repo) -> None:
    edits = [{"path": name, "start": 1, "end": 1, "new_text": "x\n"} for name in (*EXACT, "tab\there")]
    (repo.path.parent / "edits").write_text(json.dumps({"patch": {"edits": edits}}))
    answer = repo.check("--edits", str(repo.path.parent / "edits"))
    assert told(answer, "multi-file-diff", "split") == [[name.encode()] for name in (*EXACT, "tab\there")]


def test_the_two_names_of_headers_that_differ_are_exact(repo: Repo) -> None:
    patch = patch_of(b'a"b').replace(b'+++ "b/a\\"b"', b'+++ "b/lone\\377"')
    (repo.path.parent / "patch").write_bytes(patch)
    answer = repo.check("--patch", str(repo.path.parent / "patch"))
    assert told(answer, "invalid-unified-diff", "new") == b"lone\xff"


def test_the_files_that_a_command_changed_are_exact(repo: Repo) -> None:
    repo.commit({os.fsdecode(name): "1\n" for name in NAMES})
    repo.policy(command("lint", 'for each in *; do echo fixed >"$each"; done'))
    answer = apply(repo, addition(b"new"), "--dry-run")
    assert set(NAMES) <= set(told(answer, "command-changed-files", "actual"))


@pytest.mark.parametrize("name", NAMES)
def test_the_worktree_that_reserved_a_file_is_exact(repo: Repo, tmp_path: Path, name: bytes) -> None:
    repo.commit({"a": "1\n"})
    repo.install()
    place = os.path.join(os.fsencode(tmp_path), name * 20 + b"z")
    repo.git("worktree", "add", "-q", "-b", "other", place)
    declared = repo.run("intent", "declare", "-m", "Odd", "--allow", "a", cwd=Path(os.fsdecode(place)))
    assert declared.code == 0, declared.err
    repo.stage({"a": "2\n"})
    assert told(repo.check(), "intent-reserved", "worktree") == place


def test_only_takes_a_path_as_the_report_and_as_git_writes_it(repo: Repo) -> None:
    patch = patch_of(*NAMES)
    for name in NAMES:
        for text in {os.fsdecode(name), RepoPath(name).quoted, quote(name, high=True).decode()}:
            answer = apply(repo, patch, "--dry-run", "--only", text)
            (file,) = answer.change["files"]
            assert bytes_of(file["path"], file.get("path_b64")) == name


def test_only_refuses_a_text_that_names_two_files(repo: Repo) -> None:
    """The name of one is how git quotes the other."""
    name, other = b'a"b', b'"a\\"b"'
    answer = repo.run("apply", "-", "--only", other.decode(), stdin=patch_of(name, other))
    assert (answer.code, answer.out) == (2, "")
    assert "two files" in answer.err
    for text, meant in ((name.decode(), name), (RepoPath(other).quoted, other)):
        (file,) = apply(repo, patch_of(name, other), "--dry-run", "--only", text).change["files"]
        assert file["path"].encode() == meant


def test_only_names_what_the_patch_does_not_speak_of(repo: Repo) -> None:
    for text in ('"a\\q"', '"\\303\\274"', "tab\there"):
        answer = repo.run("apply", "-", "--only", text, stdin=patch_of(b"f"))
        assert (answer.code, "does not name" in answer.err) == (2, True)
        assert "\t" not in answer.err


def test_the_retry_line_can_be_typed_whatever_the_name(repo: Repo) -> None:
    repo.policy('[policy]\ndeny_prefixes = ["sub"]\n')
    for name in (b"sub/lone\xff", b"sub/bidi\xe2\x80\xae", b'sub/a"b'):
        patch = patch_of(name, b"f")
        refused = apply(repo, patch, "--only", os.fsdecode(name))
        command_line = refused.report["retry"]["command"]
        assert command_line.isprintable()
        only = shlex.split(command_line)[-2:]
        (file,) = apply(repo, patch, "--dry-run", *only).change["files"]
        assert bytes_of(file["path"], file.get("path_b64")) == name
