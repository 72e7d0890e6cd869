"""A command of the policy in a scratch tree: what it sees, which program runs, what is said of its end."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.commands.programs import command_environment, find_program
from patchgate.commands.runner import (
    CommandOutcome,
    CommandStatus,
    command_finding,
    run,
    show_command,
    tail_lines,
)
from patchgate.errors import UndecidedError
from patchgate.git.path import RepoPath
from patchgate.git.quoting import is_printable
from patchgate.policy.command_settings import CommandKind, CommandScope, CommandSettings
from patchgate.report.verdict import Fixer
from tests.amount import often

SYSTEM = os.environ["PATH"]


def tried(
    place: Path,
    *command: str,
    files: Sequence[bytes] = (),
    environ: dict[str, str] | None = None,
    kind: CommandKind = "lint",
    scope: CommandScope = "tree",
    timeout: float = 60,
    env: dict[str, str] | None = None,
    required_tools: tuple[str, ...] = (),
    mask: Callable[[bytes], bytes] | None = None,
) -> CommandOutcome:
    """Run a command in a folder; its log lies beside it."""
    return run(
        "probe",
        CommandSettings(kind, command, scope, timeout, env or {}, required_tools),
        place=str(place),
        files=[RepoPath.from_git(raw) for raw in files],
        environ=environ or {"PATH": SYSTEM},
        log_path=str(place.parent / "probe.log"),
        mask=mask,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "tree"
    found.mkdir()
    return found


def program(file: Path, says: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho {says}\n")
    file.chmod(0o755)


# ---- how it ends -----------------------------------------------------------------------------------------


def test_a_command_that_passes_has_nothing_said_of_it(place: Path) -> None:
    outcome = tried(place, "sh", "-c", "echo fine")
    assert (outcome.status, outcome.exit_code, outcome.tail, outcome.log) == (
        CommandStatus.PASSED,
        0,
        ("fine",),
        "probe.log",
    )
    assert outcome.has_passed
    assert command_finding(outcome) is None
    assert (place.parent / "probe.log").read_bytes() == b"fine\n"
    assert (place.parent / "probe.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("kind", "rule"), [("lint", "lint-failed"), ("test", "build-failed")])
def test_a_command_that_fails_speaks_against_the_patch(place: Path, kind: CommandKind, rule: str) -> None:
    outcome = tried(place, "sh", "-c", "echo a.py:1: wrong; exit 3", kind=kind)
    found = command_finding(outcome)
    assert found is not None
    assert (found.rule, found.who_can_fix) == (rule, Fixer.AGENT)
    assert {"`probe`", "3"} <= set(found.message.split())
    assert found.notes == ("a.py:1: wrong",)
    assert found.definition.undecided is False
    assert {**found.details, "seconds": 0} == {
        "command": "probe",
        "argv": "sh -c 'echo a.py:1: wrong; exit 3'",
        "exit_code": 3,
        "tail": ["a.py:1: wrong"],
        "seconds": 0,
        "log": "probe.log",
    }


def test_a_command_that_a_signal_ended_failed_by_that_signal(place: Path) -> None:
    found = command_finding(tried(place, "sh", "-c", "kill -SEGV $$"))
    assert found is not None
    assert (found.rule, found.message.split()[-1]) == ("lint-failed", "SIGSEGV")
    assert found.details["exit_code"] == -signal.SIGSEGV


def test_an_exit_code_that_a_shell_gives_for_a_missing_program_has_a_hint(place: Path) -> None:
    found = command_finding(tried(place, "sh", "-c", "patchgate-no-such"))
    assert found is not None
    assert found.rule == "lint-failed"
    assert "127" in (found.hint or "")


def test_a_command_that_takes_too_long_leaves_it_undecided(place: Path) -> None:
    outcome = tried(place, "sh", "-c", "echo began; sleep 600", timeout=0.3)
    found = command_finding(outcome)
    assert found is not None
    assert (found.rule, found.definition.undecided) == ("command-timed-out", True)
    assert found.who_can_fix is Fixer.PERSON
    assert "`probe`" in found.message
    assert " 0.3 s " in found.message
    assert found.notes == ("began",)


def test_a_command_for_files_is_not_run_where_only_deletions_are_left(place: Path) -> None:
    outcome = tried(place, "touch", "ran", "{files}", required_tools=("patchgate-no-such",))
    assert outcome.status is CommandStatus.NOTHING_TO_DO
    assert outcome.reason
    assert (command_finding(outcome), outcome.has_passed, outcome.log) == (None, True, None)
    assert list(place.parent.iterdir()) == [place]


def test_a_command_that_names_no_files_is_run_without_any(place: Path) -> None:
    assert tried(place, "touch", "ran").status is CommandStatus.PASSED
    assert (place / "ran").exists()


# ---- what cannot be started ------------------------------------------------------------------------------


def not_started(outcome: CommandOutcome) -> tuple[str, str]:
    """Give message and hint of a command that was not started, which left no log."""
    found = command_finding(outcome)
    assert found is not None
    assert (found.rule, found.definition.undecided) == ("command-not-started", True)
    assert found.who_can_fix is Fixer.ENVIRONMENT
    assert (outcome.status, outcome.exit_code, outcome.log) == (CommandStatus.NOT_STARTED, None, None)
    return found.message, found.hint or ""


def test_a_missing_tool_is_named_and_nothing_runs(place: Path) -> None:
    message, hint = not_started(
        tried(place, "touch", "ran", required_tools=("sh", "patchgate-a", "patchgate-b"))
    )
    assert " patchgate-a, patchgate-b " in message
    assert "sh" not in re.findall(r"\w+", message)
    assert "PATH" in hint
    assert list(place.iterdir()) == []


def test_a_missing_program_is_named(place: Path) -> None:
    message, _ = not_started(tried(place, "patchgate-no-such"))
    assert " patchgate-no-such " in message
    assert not (place.parent / "probe.log").exists()


@pytest.mark.parametrize(
    ("scope", "needs_tree"),
    [("files", True), ("tree", False)],
)
def test_a_script_that_the_scratch_tree_does_not_have_is_told_by_its_scope(
    place: Path, scope: CommandScope, needs_tree: bool
) -> None:
    message, said = not_started(tried(place, "./scripts/test.sh", scope=scope))
    assert "./scripts/test.sh " in message
    assert "interpreter" in message
    assert ('scope = "tree"' in said) is needs_tree
    assert not (place.parent / "probe.log").exists()


def test_a_script_that_is_not_executable_or_no_program_is_told(place: Path) -> None:
    (place / "plain").write_text("echo hi\n")
    assert "executable" in not_started(tried(place, "./plain"))[0]
    (place / "plain").write_text("")
    (place / "plain").chmod(0o755)
    assert "#!/bin/sh" in not_started(tried(place, "./plain"))[1]


def test_more_files_than_the_system_takes_go_to_several_processes(place: Path) -> None:
    names = [b"%05d" % number + b"x" * 240 for number in range(20_000)]
    outcome = tried(
        place,
        "sh",
        "-c",
        'echo "$#" >>ran; test "$1" != "$0"',
        f"./{names[0].decode()}",
        "{files}",
        files=names,
    )
    parts = [int(line) for line in (place / "ran").read_text().splitlines()]
    assert len(parts) > 1
    assert sum(parts) == len(names)
    # The part that failed counts, though those after it passed.
    assert (outcome.status, outcome.exit_code) == (CommandStatus.FAILED, 1)


def test_an_argument_that_the_system_refuses_starts_nothing(place: Path) -> None:
    message, hint = not_started(tried(place, "touch", "ran", "x" * (1 << 20)))
    assert "argument list" in message
    assert "{files}" in hint
    assert list(place.iterdir()) == []


def test_a_log_that_cannot_be_made_is_undecided_and_nothing_runs(place: Path) -> None:
    (place.parent / "probe.log").symlink_to(place / "elsewhere")
    with pytest.raises(UndecidedError, match=r"probe\.log") as caught:
        tried(place, "touch", "ran")
    assert caught.value.hint
    (place.parent / "probe.log").unlink()
    (place.parent / "probe.log").write_text("of another run")
    with pytest.raises(UndecidedError, match="File exists"):
        tried(place, "touch", "ran")
    assert (place.parent / "probe.log").read_text() == "of another run"
    assert list(place.iterdir()) == []


# ---- which program runs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [".", "", "bin", "./bin", "{place}", "{place}/bin", "{link}/bin"])
def test_a_patch_cannot_bring_the_tool_that_judges_it(place: Path, entry: str) -> None:
    for folder in (place, place / "bin"):
        program(folder / "ruff", "brought by the patch")
    program(place.parent / "tools" / "ruff", "the real one")
    (place.parent / "link").symlink_to(place)
    entry = entry.format(place=place, link=place.parent / "link")
    environ = {"PATH": f"{entry}:{place.parent}/tools:{SYSTEM}"}
    for command in (("ruff",), ("sh", "-c", "ruff")):
        assert tried(place, *command, environ=environ).tail == ("the real one",)
        (place.parent / "probe.log").unlink()
    nothing_real = {"PATH": f"{entry}:/bin:/usr/bin"}
    assert tried(place, "ruff", environ=nothing_real).status is CommandStatus.NOT_STARTED
    assert (
        tried(place, "true", environ=nothing_real, required_tools=("ruff",)).status
        is CommandStatus.NOT_STARTED
    )


def test_a_command_may_name_a_script_of_the_tree(place: Path) -> None:
    program(place / "scripts" / "test.sh", "of the tree")
    assert tried(place, "./scripts/test.sh").tail == ("of the tree",)
    (place.parent / "probe.log").unlink()
    assert tried(place, "scripts/test.sh").tail == ("of the tree",)


def test_a_path_of_which_nothing_counts_is_not_the_tree(place: Path) -> None:
    program(place / "ruff", "brought by the patch")
    for path in (".", "", ":", str(place)):
        assert tried(place, "ruff", environ={"PATH": path}).status is CommandStatus.NOT_STARTED
        assert tried(place, "sh", "-c", "ruff", environ={"PATH": path}).exit_code == 127
        (place.parent / "probe.log").unlink()


def test_a_folder_beside_the_tree_that_is_named_like_it_counts(place: Path) -> None:
    program(place.parent / "tree-tools" / "ruff", "beside")
    assert tried(place, "ruff", environ={"PATH": f"{place}-tools:{SYSTEM}"}).tail == ("beside",)


def test_a_tool_must_be_a_file_that_may_be_executed(place: Path) -> None:
    folder = place.parent / "tools"
    (folder / "folder").mkdir(parents=True)
    (folder / "plain").write_text("text")
    environment = command_environment({"PATH": f"{folder}:{SYSTEM}"}, {}, str(place))
    assert find_program("folder", environment) is None
    assert find_program("plain", environment) is None
    program(folder / "real", "x")
    assert find_program("real", environment) == str(folder / "real")
    assert find_program("sh", command_environment({}, {}, str(place))) is not None


# ---- what it sees ----------------------------------------------------------------------------------------


def test_a_command_sees_the_callers_variables_without_gits_and_ours(place: Path) -> None:
    environ = {
        "PATH": SYSTEM,
        "LANG": "de_DE.UTF-8",
        "OLDPWD": "/x",
        "PWD": "/x",
        "HTTPS_PROXY": "p",
        **dict.fromkeys(
            (
                "GIT_DIR",
                "GIT_INDEX_FILE",
                "GIT_WORK_TREE",
                "GIT_OBJECT_DIRECTORY",
                "GIT_CONFIG_COUNT",
                "GIT_CONFIG_KEY_0",
                "GIT_EXEC_PATH",
                "GIT_EXTERNAL_DIFF",
                "GIT_TRACE2_EVENT",
                "GIT_SSH_COMMAND",
                "GIT_ASKPASS",
                "GIT_EDITOR",
                "GIT_NO_SUCH_YET",
                "PATCHGATE_FULL",
            ),
            "/x",
        ),
    }
    outcome = tried(place, "env", environ=environ, env={"CI": "1", "LANG": "C", "EMPTY": ""})
    said = dict(line.split("=", 1) for line in outcome.tail)
    # What a shell or the C library may add of itself is not ours.
    assert {name: said[name] for name in said if name not in {"_", "SHLVL", "PATH"}} == {
        "LANG": "C",
        "HTTPS_PROXY": "p",
        "CI": "1",
        "EMPTY": "",
        "PWD": str(place),
        "GIT_CEILING_DIRECTORIES": str(place.parent),
    }


def test_git_in_a_tree_that_is_no_repository_finds_none_above_it(tmp_path: Path) -> None:
    place = tmp_path / "repository" / "tree"
    place.mkdir(parents=True)
    assert tried(place, "git", "init", "-q", "..").status is CommandStatus.PASSED
    (place.parent / "probe.log").unlink()
    outcome = tried(place, "git", "rev-parse", "--git-dir")
    assert outcome.status is CommandStatus.FAILED
    assert "not a git repository" in outcome.tail[0]


def test_changed_files_are_handed_on_as_bytes_that_no_tool_takes_for_options(place: Path) -> None:
    names = [b"z.py", b"-rf", b"@file", b"+x", b"a b.py", b"sub/-n", b"\xff.py", b"caf\xc3\xa9", b"$HOME;`x`"]
    outcome = tried(place, "printf", "%s\\n", "{files}", "last", files=names)
    said = (place.parent / "probe.log").read_bytes().split(b"\n")
    assert said == [*(b"./" + name for name in sorted(names)), b"last", b""]
    assert "\\xff" in outcome.shown


def test_a_value_of_the_config_arrives_as_utf_8(place: Path) -> None:
    tried(place, "sh", "-c", 'printf %s "$NAME"', "é", env={"NAME": "é"})
    assert (place.parent / "probe.log").read_bytes() == "é".encode()


# ---- what is shown of it ---------------------------------------------------------------------------------


def test_output_is_shown_without_what_a_terminal_would_obey(place: Path) -> None:
    script = (
        r"printf '\033[31mred\033[0m \033]0;title\007\302\233 \342\200\256x\r\n 10%%\r 99%%\n\000\377\n\n'"
    )
    assert tried(place, "sh", "-c", script).tail == ("red \\x9b \\u202ex", " 99%", "\\x00\\xff")


def test_a_command_that_was_silent_has_no_tail() -> None:
    assert tail_lines(b"", is_cut=False) == tail_lines(b"\n\r\n \n", is_cut=False) == ()


def test_a_line_whose_beginning_was_cut_is_left_out_if_there_is_another() -> None:
    assert tail_lines(b"alf a line\nwhole\n", is_cut=True) == ("whole",)
    assert tail_lines(b"alf a line", is_cut=True) == ("alf a line",)


@given(st.binary(max_size=400) | st.text(max_size=200).map(str.encode), st.booleans())
@settings(max_examples=often(300), deadline=None)
def test_whatever_a_command_writes_is_shown_as_safe_lines(tail: bytes, is_cut: bool) -> None:
    lines = tail_lines(tail, is_cut)
    assert len(lines) <= 40
    assert all(character == "\t" or is_printable(character) for line in lines for character in line)


def test_an_argument_list_is_shown_as_it_would_be_typed_and_cut() -> None:
    assert show_command([b"ruff", b"a b", "\x1b[m", b"\xff"]) == "ruff 'a b' '\\x1b[m' '\\xff'"
    assert len(show_command(["x" * 5000])) < 400


def test_what_is_masked_is_not_shown(place: Path) -> None:
    outcome = tried(
        place,
        "sh",
        "-c",
        "echo the word is sesame; exit 1",
        mask=lambda lines: lines.replace(b"sesame", b"***"),
    )
    assert outcome.tail == ("the word is ***",)
    assert b"sesame" not in (place.parent / "probe.log").read_bytes()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_log_that_is_not_whole_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "wb", 0) as full:
        monkeypatch.setattr("patchgate.commands.runner.new_file", lambda *_: nullcontext(full.fileno()))
        outcome = tried(place, "echo", "said")
    assert (outcome.status, outcome.dropped) == (CommandStatus.PASSED, 5)
    (warning,) = outcome.warnings
    assert "`probe`" in warning
    assert warning.endswith(": No space left on device")


def test_what_only_the_escapes_of_a_terminal_hid_is_not_shown_either(place: Path) -> None:
    def mask(content: bytes) -> bytes:
        return content.replace(b"s3cr3t", b"***")

    outcome = tried(place, "sh", "-c", r"printf 's3\033[1mcr\033(B3t!\n'; exit 1 # it'\''s s3cr3t", mask=mask)
    assert outcome.tail == ("***!",)
    assert "s3cr3t" not in outcome.shown
    assert show_command(["x" * 290 + "s3cr3t"], mask).endswith("x***'")
    assert tail_lines(b"\x1b]2;a title without its end\nthe next line\n", is_cut=False)[-1] == "the next line"
