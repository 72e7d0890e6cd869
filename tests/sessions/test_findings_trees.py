"""A malformed tree passes no door: of each such tree readers see different files, so no verdict binds it."""

from __future__ import annotations

import pytest

from tests.malformed import FILE, FOLDER, MALFORMED, blob, commit_of, ordered, rows_of, tree
from tests.world import Repo

POLICY = """\
[policy]
deny_prefixes = ["runs"]
[policy.commit]
allow_symlinks = true
allow_gitlinks = true
"""
WEAK = b"[policy]\n"


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    repo = Repo.create(tmp_path_factory.mktemp("trees"))
    repo.policy(POLICY)
    repo.commit({"runs/record": "kept\n", "src/app.py": "x = 1\n"})
    return repo


def _is_kept_out(repo: Repo, *arguments: str) -> str:
    answer = repo.cli("check", *arguments)
    assert answer.code in {1, 3}, answer.out + answer.err
    assert "Traceback" not in answer.err
    return answer.out + answer.err


@pytest.mark.parametrize("name", MALFORMED)
def test_a_commit_with_a_malformed_tree_is_never_accepted(seed: Repo, name: str) -> None:
    parent = seed.ask("rev-parse", "HEAD")
    bad = commit_of(seed, MALFORMED[name](seed, rows_of(seed, "HEAD")), parent)
    said = _is_kept_out(seed, bad)
    assert "\0" not in said
    _is_kept_out(seed, "--policy-from", parent, f"{parent}..{bad}")
    good = commit_of(seed, seed.ask("rev-parse", "HEAD^{tree}"), bad)
    _is_kept_out(seed, f"{parent}..{good}")


def test_the_message_names_the_tree_its_place_and_the_commit(seed: Repo) -> None:
    inner = tree(seed, [(FILE, b"b", blob(seed, b"1\n")), (FILE, b"a", blob(seed, b"1\n"))])
    root = tree(seed, ordered([*rows_of(seed, "HEAD"), (FOLDER, b"new", inner)]))
    bad = commit_of(seed, root, seed.ask("rev-parse", "HEAD"))
    said = _is_kept_out(seed, bad)
    assert f"the tree {inner[:12]} (folder new of commit {bad[:12]}) is malformed" in said
    assert "its entries are not sorted" in said
    assert "git fsck" in said
