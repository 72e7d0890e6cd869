"""One child: how it is started, limited and ended."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from pathlib import Path

import pytest

import patchgate
from patchgate.errors import UndecidedError
from patchgate.process.child import Child, run
from patchgate.process.child_environment import allowed_environment, own_program

ENV = allowed_environment(os.environ)
MEBIBYTE = 1 << 20


class Lifeline:
    """A named pipe that a process holds open: its end is read when the last holder is gone, not before."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lifeline"
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.hold = f"exec 9>{self.path}; echo started >&9"

    def is_cut(self) -> bool:
        """Wait, at most ten seconds, for the end of the last process that was started under `hold`."""
        said = b""
        while select.select([self._fd], [], [], 10)[0]:
            data = os.read(self._fd, 100)
            if not data:
                return said == b"started\n"
            said += data
        return False


def test_output_error_and_code_of_a_child_are_told() -> None:
    done = run(["sh", "-c", "cat; echo said >&2; exit 7"], cwd=None, env=ENV, stdin=b"read")
    assert (done.code, done.out, done.err) == (7, b"read", b"said\n")


def test_a_child_that_a_signal_ended_has_a_negative_code() -> None:
    assert run(["sh", "-c", "kill -TERM $$"], cwd=None, env=ENV).code == -signal.SIGTERM


def test_a_program_that_is_missing_is_undecided_and_named() -> None:
    with pytest.raises(UndecidedError, match=r"patchgate-no-such .*not found") as caught:
        run(["patchgate-no-such"], cwd=None, env=ENV)
    assert caught.value.hint is not None
    assert "install patchgate-no-such" in caught.value.hint
    assert " PATH" in caught.value.hint


def test_a_file_that_is_no_program_is_undecided(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text", encoding="utf-8")
    with pytest.raises(UndecidedError, match="start"):
        run([str(plain)], cwd=None, env=ENV)


def test_a_working_directory_that_is_missing_is_undecided(tmp_path: Path) -> None:
    with pytest.raises(UndecidedError):
        run(["git", "version"], cwd=str(tmp_path / "none"), env=ENV)


def test_a_child_that_takes_too_long_is_ended() -> None:
    with pytest.raises(UndecidedError, match="longer"):
        run(["sleep", "600"], cwd=None, env=ENV, seconds=0.2)


def test_a_child_that_closes_its_output_and_stays_is_ended() -> None:
    with pytest.raises(UndecidedError, match="longer"):
        run(["sh", "-c", "exec sleep 600 >&- 2>&-"], cwd=None, env=ENV, seconds=0.2)


def test_a_child_that_does_not_read_is_ended() -> None:
    with pytest.raises(UndecidedError, match="longer"):
        run(["sleep", "600"], cwd=None, env=ENV, stdin=b"x" * MEBIBYTE, seconds=0.2)


def test_a_child_that_writes_too_much_is_ended() -> None:
    with pytest.raises(UndecidedError, match="1 MiB"):
        run(["yes"], cwd=None, env=ENV, max_output=MEBIBYTE)


def test_a_child_that_ends_before_it_read_everything_is_no_error() -> None:
    assert run(["true"], cwd=None, env=ENV, stdin=b"x" * MEBIBYTE).code == 0


def test_a_megabyte_goes_in_and_comes_out() -> None:
    content = os.urandom(3 * MEBIBYTE)
    assert run(["cat"], cwd=None, env=ENV, stdin=content).out == content


def test_a_flood_of_errors_does_not_block_and_only_its_start_is_kept() -> None:
    script = "head -c 3000000 /dev/zero >&2; echo done"
    done = run(["sh", "-c", script], cwd=None, env=ENV)
    assert (done.code, done.out) == (0, b"done\n")
    assert len(done.err) <= 1 << 17


def test_a_grandchild_is_ended_with_a_late_child(tmp_path: Path) -> None:
    line = Lifeline(tmp_path)
    with pytest.raises(UndecidedError):
        run(["sh", "-c", f"{line.hold}; sleep 600 & wait"], cwd=None, env=ENV, seconds=0.5)
    assert line.is_cut()


def test_a_grandchild_that_holds_the_output_of_a_finished_child_is_ended(tmp_path: Path) -> None:
    line = Lifeline(tmp_path)
    with pytest.raises(UndecidedError):
        run(["sh", "-c", f"{line.hold}; sleep 600 &"], cwd=None, env=ENV, seconds=0.5)
    assert line.is_cut()


def test_a_grandchild_in_the_background_does_not_outlive_the_run(tmp_path: Path) -> None:
    line = Lifeline(tmp_path)
    script = f"{line.hold}; sleep 600 >/dev/null 2>&1 &"
    assert run(["sh", "-c", script], cwd=None, env=ENV).code == 0
    assert line.is_cut()


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_child_reads_its_whole_input_while_nobody_feeds_it(
    has_memory_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    sent = bytes(range(256)) * 4096
    with Child(["cat"], cwd=None, env=ENV, stdin=sent) as child:
        said = b"".join(iter(lambda: child.out.read(1 << 16), b""))
        assert child.finish().code == 0
    assert said == sent


def test_a_child_with_an_empty_input_ends() -> None:
    with Child(["cat"], cwd=None, env=ENV, stdin=b"") as child:
        assert child.out.read(1) == b""
        assert child.finish().code == 0


def test_a_child_that_is_spoken_with_answers_and_ends() -> None:
    with Child(["cat"], cwd=None, env=ENV) as child:
        child.write(b"one\n")
        assert os.read(child.out.fileno(), 100) == b"one\n"
        child.close_input()
        assert child.finish().code == 0


def test_a_flood_of_errors_does_not_block_a_conversation() -> None:
    with Child(["sh", "-c", "head -c 3000000 /dev/zero >&2; echo done"], cwd=None, env=ENV) as child:
        child.close_input()
        assert child.out.read() == b"done\n"
        assert len(child.finish().err) <= 1 << 17


def test_a_conversation_that_takes_too_long_is_ended() -> None:
    with Child(["sleep", "600"], cwd=None, env=ENV, seconds=0.2) as child:
        assert child.out.read() == b""
        with pytest.raises(UndecidedError, match="longer"):
            child.finish()


def test_a_child_that_is_gone_does_not_break_whoever_writes_to_it() -> None:
    with Child(["true"], cwd=None, env=ENV) as child:
        child.write(b"x" * MEBIBYTE)
        child.close_input()
        assert child.finish().code == 0


def test_leaving_a_conversation_ends_the_child_and_its_children(tmp_path: Path) -> None:
    line = Lifeline(tmp_path)
    with Child(["sh", "-c", f"{line.hold}; sleep 600 & echo started; wait"], cwd=None, env=ENV) as child:
        assert os.read(child.out.fileno(), 100) == b"started\n"
    assert line.is_cut()


def test_leaving_a_conversation_ends_what_a_finished_child_left_behind(tmp_path: Path) -> None:
    line = Lifeline(tmp_path)
    with Child(["sh", "-c", f"{line.hold}; sleep 600 & echo started"], cwd=None, env=ENV) as child:
        assert os.read(child.out.fileno(), 100) == b"started\n"
        child.finish()
    assert line.is_cut()


def test_ending_a_child_twice_changes_nothing() -> None:
    child = Child(["sleep", "600"], cwd=None, env=ENV)
    child.end()
    child.end()
    assert child.finish().code == -signal.SIGKILL


class _SlowlyFed(Child):
    def write(self, data: bytes) -> None:
        assert self._child.stdin is not None
        number = self._child.stdin.fileno()
        time.sleep(0.2)
        os.write(number, data)


def test_nothing_is_fed_any_more_when_a_child_was_ended() -> None:
    """The number of its pipe may be another child's then, which would read what was not meant for it."""
    before = threading.enumerate()
    with _SlowlyFed(["sleep", "600"], cwd=None, env=ENV) as child:
        child.feed(b"late")
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_what_is_fed_while_answers_are_read_arrives_whole() -> None:
    content = b"line of text\n" * 300_000
    with Child(["cat"], cwd=None, env=ENV) as child:
        child.feed(content)
        assert child.out.read() == content
        assert child.finish().code == 0


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_EXTERNAL_DIFF",
        "GIT_TRACE",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "LD_PRELOAD",
        "PYTHONPATH",
    ],
)
def test_a_variable_that_could_steer_git_is_left_behind(name: str) -> None:
    assert name not in allowed_environment({name: "x", "PATH": "/bin"})


def test_a_patchgate_of_ours_reads_variables_of_python_only_where_they_name_it() -> None:
    packages = str(Path(patchgate.__file__).parents[1])
    assert "-E" in own_program({"PYTHONPATH": "src"})
    assert "-E" not in own_program({"PYTHONPATH": f"src:{packages}"})
    assert "-E" not in own_program({"PYTHONHOME": "/usr"})


def test_a_child_speaks_the_locale_c() -> None:
    assert allowed_environment({"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE", "PATH": "/bin"}) == {
        "LC_ALL": "C",
        "PATH": "/bin",
    }
