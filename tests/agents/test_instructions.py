"""The section for AGENTS.md: it says what the policy says, and `--check` sees when it does not any more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from patchgate.agents.instructions import MOST_FILE
from tests.component_world import declared
from tests.world import Repo

POLICY = '[policy]\nallow_roots = ["src"]\ndeny_prefixes = ["src/vault"]\ndeny_suffixes = [".pem"]\n'
END = "<!-- patchgate: end -->\n"


def made(folder: Path, policy: str = POLICY) -> tuple[Repo, str]:
    """Make a repository with a policy; return it with its section."""
    repo = Repo.create(folder)
    repo.policy(policy)
    shown = repo.cli("agent", "instructions")
    assert shown.code == 0, shown.err
    return repo, shown.out


def check(repo: Repo, content: str | bytes) -> tuple[int, str]:
    repo.write("AGENTS.md", content)
    done = repo.cli("agent", "instructions", "--check", "AGENTS.md")
    return done.code, done.out + done.err


def test_the_section_says_what_the_policy_asks_of_an_agent(tmp_path: Path) -> None:
    _, section = made(tmp_path, POLICY + "[policy.agent]\nmax_files = 3\n" + declared("calc"))
    for line in (
        "- change only what is below `src`",
        "- never change `src/vault`",
        "- neither add nor change files that end in `.pem`",
        "- at most 3 files",
        "- these components have a contract: `calc`",
    ):
        assert line in section.split("\n"), line
    assert section.endswith(END)


def test_a_current_section_is_accepted_whatever_is_around_it_and_however_lines_end(tmp_path: Path) -> None:
    repo, section = made(tmp_path)
    assert check(repo, section) == (0, "")
    assert check(repo, f"# Mine\n\n{section}\nMore of mine.\n") == (0, "")
    assert check(repo, section.replace("\n", "\r\n")) == (0, "")


def test_a_section_is_out_of_date_when_the_policy_has_changed(tmp_path: Path) -> None:
    repo, section = made(tmp_path)
    repo.policy(POLICY + "[policy.agent]\nmax_files = 2\n")
    code, said = check(repo, section)
    assert code == 1
    assert "the policy has changed" in said
    assert check(repo, repo.cli("agent", "instructions").out) == (0, "")


def test_a_section_that_was_edited_is_out_of_date(tmp_path: Path) -> None:
    repo, section = made(tmp_path)
    code, said = check(repo, section.replace("never change `src/vault`", "change `src/vault`"))
    assert code == 1
    assert "edited" in said


@pytest.mark.parametrize(
    "spoil",
    [
        lambda section: "# Nothing\n",
        lambda section: section.removesuffix(END),
        lambda section: section + section,
        lambda section: section + END,
        lambda section: END + section.removesuffix(END),
        lambda section: section.encode("utf-16"),
        lambda section: b"x" * (MOST_FILE + 1),
    ],
    ids=["none", "open", "two", "two ends", "the end first", "no UTF-8", "too large"],
)
def test_a_file_without_exactly_one_section_exits_with_2(
    tmp_path: Path, spoil: Callable[[str], str | bytes]
) -> None:
    repo, section = made(tmp_path)
    code, said = check(repo, spoil(section))
    assert code == 2
    assert "help: " in said


def test_a_file_that_is_not_there_exits_with_2(tmp_path: Path) -> None:
    repo, _ = made(tmp_path)
    assert repo.cli("agent", "instructions", "--check", "no.md").code == 2


def test_a_pattern_of_the_policy_can_neither_end_the_section_nor_leave_its_code_span(tmp_path: Path) -> None:
    tricky = '[policy]\ndeny = ["<!-- patchgate: end -->", "a``b"]\n'
    repo, section = made(tmp_path, tricky)
    assert "``` a``b ```" in section
    assert check(repo, section) == (0, "")
