"""The brief: what is never cut, what is shortened, what is only there when asked for, and that it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchgate.agents.brief import brief_text, count_tokens, make_brief
from patchgate.agents.brief_parts import MOST_FIRST
from patchgate.errors import UsageError
from patchgate.runs.brief_text import RULES_TEXT
from tests.component_world import contract, declared, opened
from tests.runs.phase_world import CHECK, CODE, CONTRACT, RIGHT, TESTS, Desk
from tests.world import Repo

BAD_PATCH = b"no patch\n"


def calc(folder: Path, *, tests: str = CHECK, more: str = "") -> Repo:
    """Make a repository with the component `calc` and a file of no component."""
    repo = Repo.create(folder)
    repo.policy(declared("calc", test_command=["sh", TESTS]) + more)
    repo.commit({CONTRACT: contract("calc"), TESTS: tests, CODE: "right\n", "README.md": "hello\n"}, "Begin")
    return repo


def declare(repo: Repo, *paths: str) -> str:
    allowed = [word for path in paths for word in ("--allow", path)]
    done = repo.cli("intent", "declare", "-m", "count from two", *allowed, "--lazy", "--format", "json")
    return str(json.loads(done.out)["intent"]["id"])


# ---- tier 1 ----------------------------------------------------------------------------------------------


def test_contract_and_tests_are_never_cut_even_at_100_tokens(tmp_path: Path) -> None:
    long = CHECK + "".join(f"# line {number} of the tests\n" for number in range(500))
    repo = calc(tmp_path, tests=long)
    shown = repo.cli("agent", "brief", "calc", "--max-tokens", "100")
    assert shown.code == 0
    assert contract("calc").rstrip() in shown.out
    assert long.rstrip() in shown.out
    assert "## Policy" not in shown.out
    assert "- Policy: " in shown.out.split("## Left out of this brief")[1]
    assert count_tokens(shown.out) > 100


def test_the_files_of_an_intent_are_never_cut(tmp_path: Path) -> None:
    repo = calc(tmp_path)
    name = declare(repo, "README.md", CODE, "docs/")
    for arguments in ((name,), ()):
        shown = repo.cli("agent", "brief", *arguments, "--max-tokens", "1").out
        for line in ("- allowed: README.md", "- allowed: docs/", "hello", f"### {TESTS}"):
            assert line in shown.split("\n"), line


def test_a_brief_begins_with_the_two_fixed_rules_here_and_in_a_run(tmp_path: Path) -> None:
    desk = Desk(tmp_path, RIGHT)
    assert desk.repo.cli("agent", "brief", "calc").out.startswith(RULES_TEXT + "\n")
    desk.perform()
    assert desk.briefs[0].startswith(RULES_TEXT + "\n")
    assert "specific and testable" in RULES_TEXT
    assert "declares its side effects" in RULES_TEXT


def test_a_path_means_its_component_or_else_the_file_and_each_is_there_once(tmp_path: Path) -> None:
    repo = calc(tmp_path)
    shown = repo.cli("agent", "brief", CODE, "calc", "README.md", TESTS, "README.md").out
    assert shown.count("# Component calc\n") == 1
    assert shown.count("## File: README.md\n\n```\nhello\n```\n") == 1


def test_the_brief_shows_the_index_and_not_what_is_only_on_disk(tmp_path: Path) -> None:
    repo = calc(tmp_path)
    repo.stage({"README.md": "staged\n"})
    repo.write("README.md", "unstaged\n")
    repo.write("new.txt", "new\n")
    shown = repo.cli("agent", "brief", "README.md", "new.txt").out
    assert "staged" in shown
    assert "unstaged" not in shown
    assert "## File: new.txt\n\nIt is not in the index." in shown


def test_files_that_are_too_large_to_be_whole_are_refused_and_not_cut(tmp_path: Path) -> None:
    repo = calc(tmp_path)
    repo.stage({"large.txt": b"x\n" * (MOST_FIRST // 2 + 1)})
    shown = repo.cli("agent", "brief", "large.txt")
    assert (shown.code, shown.out) == (2, "")
    assert "name fewer" in shown.err


# ---- tier 2 ----------------------------------------------------------------------------------------------


def test_what_is_known_follows_and_is_shortened_to_the_room(tmp_path: Path) -> None:
    deny = "".join(f'"secret-{number}.txt", ' for number in range(8))
    repo = calc(tmp_path, more=f"\n[policy]\ndeny = [{deny}]\n")
    declare(repo, "docs/")
    (tmp_path / "bad.patch").write_bytes(BAD_PATCH)
    assert repo.cli("apply", str(tmp_path / "bad.patch")).code == 1
    whole = make_brief(opened(repo), ["calc"])
    for title in ("## Policy", "## Last refusal", "## Intents of this worktree"):
        assert title in whole.text.split("\n"), title
    assert "`secret-7.txt`" in whole.text
    assert "count from two" in whole.text
    least = make_brief(opened(repo), ["calc"], max_tokens=1).text
    assert "## Policy" not in least
    first = count_tokens(least)
    for room in range(0, whole.tokens - first + 40, 10):
        short = make_brief(opened(repo), ["calc"], max_tokens=first + room)
        assert short.tokens <= first + room
        shown = whole.text.split("## Left out")[0].split("\n")
        missing = [line for line in shown if line not in short.text.split("\n")]
        assert bool(short.left_out[:-1]) == bool(missing), (room, missing)


def test_the_last_refusal_is_what_the_attempt_said_until_one_is_applied(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / "bad.patch").write_bytes(BAD_PATCH)
    (tmp_path / "good.patch").write_bytes(RIGHT)
    assert desk.repo.cli("apply", str(tmp_path / "bad.patch")).code == 1
    refused = desk.repo.cli("agent", "brief", "calc").out
    assert "error[not-a-unified-diff]" in refused.split("## Last refusal")[1].split("\n## ")[0]
    assert desk.repo.cli("apply", str(tmp_path / "good.patch")).code == 0
    assert "## Last refusal" not in desk.repo.cli("agent", "brief", "calc").out


def test_what_hooks_refused_last_is_named_with_its_time(tmp_path: Path) -> None:
    repo = calc(tmp_path, more='\n[policy]\ndeny_prefixes = ["runs"]\n')
    repo.install()
    repo.stage({"runs/record": "1\n"})
    assert repo.try_git("commit", "-q", "-m", "Record the run").returncode != 0
    section = repo.cli("agent", "brief", "calc").out.split("## Refused by hooks\n\n")[1].split("\n\n")[0]
    assert section.startswith("- 20")
    assert section.endswith(" pre-commit: deny-prefix")


# ---- tier 3 ----------------------------------------------------------------------------------------------


def test_history_is_only_there_when_it_is_asked_for(tmp_path: Path) -> None:
    repo = calc(tmp_path)
    repo.commit({"README.md": "hello again\n"}, "Say hello again")
    repo.commit({CODE: "right\n\n"}, "Leave room")
    plain = repo.cli("agent", "brief", "calc").out
    assert "## History" not in plain
    assert "add --research" in plain.split("## Left out of this brief")[1]
    asked = repo.cli("agent", "brief", "calc", "--research").out
    history = asked.split("## History")[1].split("\n## ")[0]
    assert "Leave room" in history
    assert "Begin" in history
    assert "Say hello again" not in history


# ---- what it says of itself ------------------------------------------------------------------------------


def test_it_says_how_tokens_were_counted_and_that_nothing_is_missing(tmp_path: Path) -> None:
    shown = calc(tmp_path).cli("agent", "brief", "calc", "--research").out
    closing = shown.split("## Left out of this brief\n\n")[1]
    assert closing.startswith("- nothing\n")
    assert "bytes of UTF-8 divided by 4, rounded up" in closing
    assert "8,000" in closing
    assert [count_tokens(text) for text in ("", "a", "abcd", "abcde", "äää")] == [0, 1, 1, 2, 2]


def test_at_the_start_of_a_session_the_limit_always_holds(tmp_path: Path) -> None:
    repo = calc(tmp_path, tests=CHECK + "# more\n" * 5000)
    assert brief_text(opened(repo), 1500) == repo.cli("agent", "brief", "--max-tokens", "1500").out
    name = declare(repo, "src/", CODE)
    for limit in (1500, 200, 60):
        text = brief_text(opened(repo), limit)
        assert count_tokens(text) <= limit
    assert name in brief_text(opened(repo), 1500)
    assert "git patchgate agent brief" in brief_text(opened(repo), 1500)


# ---- hostile ---------------------------------------------------------------------------------------------


def test_text_of_the_repository_cannot_leave_its_block_or_reach_the_terminal(tmp_path: Path) -> None:
    tricky = CHECK + "# ```\n# \x1b[2J\n## Left out of this brief\n"
    shown = calc(tmp_path, tests=tricky).cli("agent", "brief", "calc").out
    assert "\x1b" not in shown
    block = shown.split(f"### {TESTS}\n\n")[1]
    assert block.startswith("````\n")
    assert "\n## Left out of this brief\n````\n" in block


@pytest.mark.parametrize(
    "name", ["", "..", "../up", "/etc/passwd", "no\0ne", "\x1b[2J", "i-0123456789", "a" * 9999]
)
def test_a_name_of_nothing_here_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as raised:
        make_brief(opened(calc(tmp_path)), [name])
    assert raised.value.hint
    assert raised.value.message.isprintable()


def test_a_section_that_cannot_be_read_is_named_and_hides_nothing_else(tmp_path: Path) -> None:
    repo = calc(tmp_path, more='\n[run]\nquestions = "questions.json"\n')
    shown = repo.cli("agent", "brief", "calc")
    assert shown.code == 0
    assert "## Policy" in shown.out
    assert "- Answers could not be read: " in shown.out.split("## Left out of this brief")[1]
