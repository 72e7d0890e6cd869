"""CODEOWNERS as the documentation of the two big hosts has it; each row is an example from there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from patchgate.git.path import RepoPath
from patchgate.policy.codeowners import CodeOwners
from tests.steps import growth

# GitHub, "About code owners", the example file.
GITHUB = b"""\
# This is a comment.
*       @global-owner1 @global-owner2
*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/*  docs@example.com
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat
/apps/ @octocat
/apps/github
"""
# GitLab, "Code Owners syntax and error handling".
GITLAB = b"""\
* @admin
README.md @docs-team
/docs/ @root-docs
internal/README.md @internal
config/*.yml @config-owner
path\\ with\\ spaces/ @space-owner
!generated.rb @nobody
[Documentation] @docs-team
docs/
README.md
^[Database][2] @database-team
model/db/
config/db/database-setup.md @docs-team
"""


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("any", ("@global-owner1", "@global-owner2")),
        ("src/a.js", ("@js-owner",)),
        ("src/a.go", ("docs@example.com",)),
        ("a.txt", ("@octo-org/octocats",)),
        ("build/logs/x", ("@octocat",)),
        ("docs/getting-started.md", ("@doctocat",)),
        ("x/docs/a.md", ("@global-owner1", "@global-owner2")),
        ("x/apps/a", ("@octocat",)),
        ("apps/a", ("@octocat",)),
        ("apps/github/x", ()),
        ("apps/github", ()),
        ("scripts/deep/a", ("@doctocat", "@octocat")),
        ("deeply/nested/logs/a", ("@octocat",)),
    ],
)
def test_the_last_line_that_matches_names_the_owners(path: str, owners: tuple[str, ...]) -> None:
    assert CodeOwners(GITHUB).of(RepoPath(path.encode())) == owners


def test_a_star_at_the_end_means_the_files_of_that_folder_alone() -> None:
    found = CodeOwners(b"docs/* @docs\n")
    assert found.of(RepoPath(b"docs/getting-started.md")) == ("@docs",)
    assert found.of(RepoPath(b"docs/build-app/troubleshooting.md")) == ()


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("README.md", ("@docs-team",)),
        ("internal/README.md", ("@internal", "@docs-team")),
        ("docs/a", ("@root-docs", "@docs-team")),
        ("model/db/x", ("@admin", "@database-team")),
        ("config/db/database-setup.md", ("@admin", "@docs-team")),
        ("config/a.yml", ("@config-owner",)),
        ("path with spaces/a", ("@space-owner",)),
        ("generated.rb", ("@admin",)),
    ],
)
def test_each_section_names_owners_or_has_default_ones(path: str, owners: tuple[str, ...]) -> None:
    assert CodeOwners(GITLAB).of(RepoPath(path.encode())) == owners


def test_a_large_file_is_read_in_linear_time() -> None:
    def read(size: int) -> Callable[[], object]:
        return lambda: CodeOwners(b"docs/* @a\n" * size).of(RepoPath(b"docs/x/y"))

    assert growth(read, 100) < 5


@given(some.binary(max_size=300), some.binary(min_size=1, max_size=40))
def test_no_file_breaks_the_reader_and_no_owner_is_more_than_a_name(raw: bytes, path: bytes) -> None:
    for owner in CodeOwners(raw).of(RepoPath(path)):
        assert owner.isascii()
        assert owner.isprintable()
        assert " " not in owner
