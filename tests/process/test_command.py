"""A command of the user's: how it is watched, logged and ended, and that nothing of it lives on."""

from __future__ import annotations

import ctypes
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.errors import UndecidedError
from patchgate.process.command import ProcessResult, StartFault, run_command
from patchgate.process.orphans import ProcessIdentity, children, kill_orphans
from patchgate.process.spool import TAIL, Spool
from tests.amount import often

ENV = {"PATH": os.environ["PATH"]}
IS_LINUX = sys.platform.startswith("linux")
on_linux = pytest.mark.skipif(not IS_LINUX, reason="only Linux tells of orphans")


@dataclass
class Room:
    """A folder with a log, and a number by which what was started there is known among all processes."""

    folder: Path
    mark: str

    @property
    def sleep(self) -> str:
        """A command that outlives every test, unless it is ended."""
        return f"sleep {self.mark}"

    @property
    def log(self) -> bytes:
        return (self.folder / "log").read_bytes()

    def run(
        self,
        script: str,
        *,
        seconds: float = 60,
        max_log: int = 8 << 20,
        mask: Callable[[bytes], bytes] | None = None,
        tick: Callable[[float], None] | None = None,
        stdin: bytes | None = None,
        stall: float | None = None,
    ) -> ProcessResult:
        """Run a script of the shell; its output goes to the log."""
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            return run_command(
                ["sh", "-c", script],
                cwd=str(self.folder),
                env=ENV,
                seconds=seconds,
                log=log,
                max_log=max_log,
                grace=0.2,
                mask=mask,
                tick=tick,
                stdin=stdin,
                stall=stall,
            )
        finally:
            os.close(log)

    def living(self) -> list[str]:
        """List the processes that were started here and live."""
        listed = subprocess.run(["ps", "-Ao", "args"], capture_output=True, check=True).stdout.decode(
            errors="replace"
        )
        return [line for line in listed.splitlines() if self.mark in line]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    found = Room(tmp_path, f"6{os.getpid()}.{abs(hash(str(tmp_path)))}")
    yield found
    assert found.living() == []


# ---- what comes back -------------------------------------------------------------------------------------


def test_the_exit_code_and_both_streams_of_a_command_are_told(room: Room) -> None:
    ended = room.run("echo one; echo two >&2; echo three; exit 7")
    assert (ended.code, ended.tail, ended.timed_out) == (7, b"one\ntwo\nthree\n", False)
    assert room.log == b"one\ntwo\nthree\n"
    assert (ended.logged, ended.dropped, ended.log_fault) == (14, 0, None)


def test_a_command_that_a_signal_ended_has_a_negative_code(room: Room) -> None:
    assert room.run("kill -SEGV $$").code == -signal.SIGSEGV


def test_a_command_runs_in_its_folder_with_nothing_to_read(room: Room) -> None:
    ended = room.run("cat; pwd -P")
    assert ended.tail.decode() == f"{room.folder.resolve()}\n"


def test_a_command_reads_its_input_while_its_output_is_read(room: Room) -> None:
    # Far more than two pipes contain: whoever only writes, or only reads, waits for ever.
    sent = b"0123456789abcde\n" * (1 << 17)
    ended = room.run("cat", stdin=sent)
    assert (ended.code, ended.timed_out) == (0, False)
    assert room.log == sent


@pytest.mark.parametrize("script", ["true", "exec <&-; echo done", "head -c 10 >/dev/null"])
def test_a_command_need_not_read_its_input(room: Room, script: str) -> None:
    ended = room.run(script, stdin=bytes(1 << 20))
    assert (ended.code, ended.timed_out) == (0, False)


def test_an_empty_input_ends_at_once(room: Room) -> None:
    assert room.run("cat; echo end", stdin=b"").tail == b"end\n"


def test_a_command_that_writes_nothing_for_too_long_is_ended_with_its_children(room: Room) -> None:
    ended = room.run(f"echo begun; {room.sleep} & {room.sleep}", stall=0.1)
    assert (ended.timed_out, ended.has_stalled, ended.tail) == (True, True, b"begun\n")


def test_a_command_that_writes_all_the_time_does_not_stall(room: Room) -> None:
    ended = room.run("while :; do echo x; sleep 0.01; done", seconds=1.5, stall=1.0)
    assert (ended.timed_out, ended.has_stalled) == (True, False)


def test_a_command_has_the_environment_that_was_handed_in_and_no_other(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    assert b"GIT_DIR" not in room.run("env").tail


def test_a_command_may_allocate_what_it_wants_and_leaves_no_core(room: Room) -> None:
    began = _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    ours = subprocess.run(["sh", "-c", "ulimit -d"], capture_output=True, check=True).stdout
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        assert room.run("ulimit -d; ulimit -S -c").tail == ours + b"0\n"
        assert resource.getrlimit(resource.RLIMIT_CORE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, began)


@on_linux
def test_what_a_command_wrote_at_its_very_end_is_not_lost(room: Room) -> None:
    script = (
        "import fcntl, os, time; fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20); time.sleep(1.2);"
        "os.write(1, bytes(500_000)); os._exit(0)"
    )

    def wait_for_its_end(seconds: float) -> None:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)

    ended = room.run(f"exec {sys.executable} -c '{script}'", tick=wait_for_its_end)
    assert (ended.code, ended.logged) == (0, 500_000)


def test_output_that_is_no_text_is_logged_byte_for_byte(room: Room) -> None:
    content = bytes(range(256)) * 4000
    (room.folder / "content").write_bytes(content)
    assert room.run("cat content").tail == content[-TAIL:]
    assert room.log == content


def test_a_flood_is_logged_up_to_the_limit_and_the_command_goes_on(room: Room) -> None:
    ended = room.run("head -c 5000000 /dev/zero; echo last; exit 3", max_log=1000)
    assert (ended.code, ended.logged, ended.dropped) == (3, 1000, 5_000_005 - 1000)
    assert room.log == bytes(1000) + b"\npatchgate: the log ends here, at its limit of 1000 bytes\n"
    assert ended.tail == bytes(TAIL - 5) + b"last\n"


@on_linux
def test_a_log_that_cannot_be_written_does_not_end_the_command() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        ended = run_command(["echo", "said"], cwd="/", env=ENV, seconds=60, log=full.fileno())
    assert (ended.code, ended.tail) == (0, b"said\n")
    assert (ended.logged, ended.dropped, ended.log_fault) == (0, 5, "No space left on device")


def test_a_command_without_a_log_has_a_tail() -> None:
    ended = run_command(["echo", "said"], cwd="/", env=ENV, seconds=60)
    assert (ended.code, ended.tail, ended.logged, ended.log_fault) == (0, b"said\n", 0, None)


def test_what_is_masked_stands_neither_in_the_log_nor_in_the_tail(room: Room) -> None:
    ended = room.run(
        "printf 'a key'; printf ' of gold\\nno end: key'", mask=lambda lines: lines.replace(b"key", b"***")
    )
    assert ended.tail == room.log == b"a *** of gold\nno end: ***"


# ---- standard output in a file of its own ----------------------------------------------------------------


def apart(room: Room, script: str, most: int = 8 << 20, output: Path | None = None) -> ProcessResult:
    """Run a script of the shell; its output goes to one file, its errors to the log."""
    with (
        open(output or room.folder / "output", "wb", buffering=0) as own,
        open(room.folder / "log", "wb", buffering=0) as log,
    ):
        return run_command(
            ["sh", "-c", script],
            cwd=str(room.folder),
            env=ENV,
            seconds=60,
            log=log.fileno(),
            mask=lambda lines: lines.replace(b"key", b"***"),
            output=own.fileno(),
            max_output=most,
            grace=0.2,
        )


def test_output_apart_is_kept_byte_for_byte_and_errors_are_logged_and_masked(room: Room) -> None:
    ended = apart(room, "echo first key >&2; printf 'a \\000 key'; echo last >&2; exit 3")
    assert (ended.code, ended.tail) == (3, b"first ***\nlast\n")
    assert room.log == ended.tail
    assert (room.folder / "output").read_bytes() == b"a \0 key"
    assert (ended.has_flooded, ended.output_fault, ended.dropped) == (False, None, 0)


def test_neither_of_two_full_pipes_holds_up_the_other(room: Room) -> None:
    ended = apart(room, "head -c 3000000 /dev/zero & head -c 3000000 /dev/zero >&2; wait")
    assert (ended.code, ended.timed_out, ended.has_flooded, ended.logged) == (0, False, False, 3_000_000)
    assert (room.folder / "output").stat().st_size == 3_000_000


def test_output_apart_that_goes_on_for_ever_ends_the_command(room: Room) -> None:
    ended = apart(room, f"yes & {room.sleep}", most=100_000)
    assert (ended.has_flooded, ended.timed_out, ended.output_fault) == (True, False, None)
    assert (room.folder / "output").read_bytes().startswith(b"y\n" * 50_000)
    assert room.living() == []


def test_as_much_output_apart_as_is_allowed_is_no_flood(room: Room) -> None:
    assert not apart(room, "head -c 100000 /dev/zero", most=100_000).has_flooded
    assert apart(room, "head -c 100001 /dev/zero", most=100_000).has_flooded


@on_linux
def test_output_apart_that_cannot_be_written_is_told(room: Room) -> None:
    ended = apart(room, f"yes & {room.sleep}", output=Path("/dev/full"))
    assert (ended.output_fault, ended.has_flooded) == ("No space left on device", False)
    assert room.living() == []


# ---- what is not started ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("patchgate-no-such", StartFault.NOT_FOUND),
        ("./none", StartFault.NOT_FOUND),
        ("./plain/none", StartFault.NOT_FOUND),
        ("./no-interpreter", StartFault.NOT_FOUND),
        ("./plain", StartFault.NOT_EXECUTABLE),
        ("./folder", StartFault.NOT_EXECUTABLE),
        ("./empty", StartFault.NOT_A_PROGRAM),
    ],
)
def test_what_cannot_be_started_is_told_with_the_reason(
    tmp_path: Path, program: str, fault: StartFault
) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "folder").mkdir()
    for name, content in (("no-interpreter", "#!/none\n"), ("empty", "")):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    ended = run_command([program], cwd=str(tmp_path), env=ENV, seconds=60)
    assert (ended.code, ended.fault) == (None, fault)
    assert ended.reason


def test_arguments_that_are_too_long_for_the_system_start_nothing(tmp_path: Path) -> None:
    ended = run_command(["touch", *["name" * 200] * 20_000], cwd=str(tmp_path), env=ENV, seconds=60)
    assert ended.fault is StartFault.TOO_LONG
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing_is_undecided(tmp_path: Path) -> None:
    with pytest.raises(UndecidedError, match="directory"):
        run_command(["true"], cwd=str(tmp_path / "none"), env=ENV, seconds=60)


# ---- how it ends -----------------------------------------------------------------------------------------


def test_a_command_that_takes_too_long_is_asked_to_end(room: Room) -> None:
    ended = room.run(f"trap 'echo tidied; exit 0' TERM; echo began; {room.sleep} & wait", seconds=0.3)
    assert (ended.timed_out, ended.tail) == (True, b"began\ntidied\n")


def test_a_command_that_does_not_want_to_end_is_killed(room: Room) -> None:
    ended = room.run(f"trap '' TERM; {room.sleep}; {room.sleep}", seconds=0.3)
    assert (ended.timed_out, ended.code) == (True, -signal.SIGKILL)


def test_a_command_that_floods_is_ended_in_time(room: Room) -> None:
    assert room.run("yes", seconds=0.3, max_log=1 << 16).timed_out


def test_a_command_that_closes_its_output_is_waited_for(room: Room) -> None:
    assert room.run("exec >&- 2>&-; sleep 0.1; exit 4").code == 4


def test_a_command_that_closes_its_output_and_hangs_is_ended(room: Room) -> None:
    assert room.run(f"exec {room.sleep} >&- 2>&-", seconds=0.3).timed_out


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "children",
    [
        "{sleep} & {sleep} & {sleep}",
        "({sleep} & {sleep}) & wait",
        pytest.param("setsid {sleep} & setsid sh -c '{sleep}; {sleep}' & wait", marks=on_linux),
        pytest.param("setsid sh -c 'trap \"\" TERM HUP; {sleep}; {sleep}' & {sleep}", marks=on_linux),
        pytest.param("(setsid sh -c 'setsid {sleep} & setsid {sleep} &' &); {sleep}", marks=on_linux),
    ],
)
def test_a_command_that_hangs_with_children_leaves_none(room: Room, children: str) -> None:
    ended = room.run(f"echo began; {children.format(sleep=room.sleep)}", seconds=0.3)
    assert (ended.timed_out, ended.tail, ended.survivors) == (True, b"began\n", 0)
    assert room.living() == []


@pytest.mark.parametrize(
    "children",
    [
        "{sleep} &",
        "{sleep} >/dev/null 2>&1 &",
        "nohup {sleep} &",
        pytest.param("setsid {sleep} &", marks=on_linux),
        pytest.param("setsid sh -c 'setsid {sleep} & exec setsid {sleep}' &", marks=on_linux),
        pytest.param("(setsid sh -c '({sleep} &) ; {sleep}; {sleep}' >/dev/null 2>&1 &);", marks=on_linux),
        pytest.param("setsid yes {sleep} &", marks=on_linux),
    ],
)
def test_what_a_finished_command_left_running_is_ended_and_does_not_hold_us(
    room: Room, children: str
) -> None:
    ended = room.run(f"{children.format(sleep=room.sleep)} echo done; exit 5")
    assert (ended.code, ended.timed_out, ended.survivors) == (5, False, 0)
    assert room.living() == []


@on_linux
def test_a_stray_whose_name_would_fool_a_reader_of_proc_is_ended(room: Room) -> None:
    shutil.copy(shutil.which("sleep") or "", room.folder / "a) S 1 (")
    assert room.run(f"setsid './a) S 1 (' {room.mark} & exit 0").code == 0
    assert room.living() == []


@on_linux
def test_a_stray_that_is_stopped_is_ended(room: Room) -> None:
    assert room.run(f"setsid sh -c 'kill -STOP $$; {room.sleep}' & sleep 0.1").code == 0
    assert room.living() == []


@on_linux
def test_other_children_of_ours_are_left_alone(room: Room) -> None:
    with subprocess.Popen(["sleep", room.mark]) as living, subprocess.Popen(["sh", "-c", "exit 5"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert room.run(f"setsid {room.sleep} & exit 0").code == 0
        assert living.poll() is None
        assert ended.wait() == 5
        living.kill()


@on_linux
def test_orphans_are_adopted_only_while_a_command_runs(room: Room) -> None:
    asked = ctypes.c_int(-1)
    room.run("true")
    ctypes.CDLL(None).prctl(37, ctypes.byref(asked), 0, 0, 0)
    assert asked.value == 0


def test_no_descriptor_and_no_child_of_ours_is_left(room: Room) -> None:
    before = sorted(os.listdir("/dev/fd")), children()
    for script in ("true", "exit 1", f"{room.sleep} &"):
        room.run(script)
    assert (sorted(os.listdir("/dev/fd")), children()) == before


# ---- interrupted -----------------------------------------------------------------------------------------


class _AskedToEndError(BaseException):
    """What a handler of signals raises."""


@contextmanager
def raising(times: int) -> Iterator[list[int]]:
    """Raise at the first few signals SIGUSR1; gives the list that they are noted in."""
    noted: list[int] = []

    def answer(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if len(noted) <= times:
            raise _AskedToEndError

    before = signal.signal(signal.SIGUSR1, answer)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_signal_ends_the_command_and_is_passed_on(room: Room, tmp_path: Path) -> None:
    # Not before the start is over: what is half started is nobody's yet.
    started = tmp_path / "started"
    wait = f"until [ -e {shlex.quote(str(started))} ]; do sleep 0.1; done"
    with raising(1) as noted, pytest.raises(_AskedToEndError):
        room.run(f"{room.sleep} & {wait}; kill -USR1 $PPID; {room.sleep}", tick=lambda _: started.touch())
    assert noted == [signal.SIGUSR1]
    assert room.living() == []


@on_linux
def test_a_second_signal_does_not_keep_anything_alive(
    room: Room, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(before: frozenset[ProcessIdentity], seconds: float, spared: int | None = None) -> int:
        if len(noted) == 1:
            os.kill(os.getpid(), signal.SIGUSR1)
        return kill_orphans(before, seconds, spared)

    monkeypatch.setattr("patchgate.process.command.kill_orphans", interrupted)
    # The first one not before the start is over: what is half started is nobody's yet.
    started = tmp_path / "started"
    wait = f"until [ -e {shlex.quote(str(started))} ]; do sleep 0.1; done"
    command = f"setsid {room.sleep} & {wait}; kill -USR1 $PPID; {room.sleep}"
    with raising(2) as noted, pytest.raises(_AskedToEndError):
        room.run(command, tick=lambda _: started.touch())
    assert len(noted) == 2
    assert room.living() == []


def test_what_the_progress_raises_ends_the_command(room: Room) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        room.run(f"{room.sleep} & {room.sleep}", tick=interrupt)
    assert room.living() == []


def test_progress_is_told_with_the_seconds_since_the_start(room: Room) -> None:
    told: list[float] = []
    room.run(room.sleep, seconds=1.5, tick=told.append)
    assert len(told) == 1
    assert told[0] >= 1


# ---- the spool -------------------------------------------------------------------------------------------


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([b"\n", b"key\n", b"k", b"x" * 5000]), max_size=30),
    st.integers(0, 6000),
    st.booleans(),
)
@settings(max_examples=often(200), deadline=None)
def test_a_spool_counts_every_byte_and_keeps_the_end(pieces: list[bytes], most: int, masked: bool) -> None:
    reading, writing = os.pipe()
    try:
        spool = Spool(writing, most, (lambda lines: lines.replace(b"key", b"KEY")) if masked else None)
        for piece in pieces:
            spool.add(piece)
        spool.close()
        os.close(writing)
        written = b""
        while data := os.read(reading, 1 << 16):
            written += data
    finally:
        os.close(reading)
    whole = b"".join(pieces)
    expected = whole.replace(b"key", b"KEY") if masked else whole
    assert spool.logged + spool.dropped == len(expected)
    assert spool.tail == expected[-TAIL:]
    assert written[: spool.logged] == expected[: spool.logged]
    assert (spool.dropped > 0) == (len(expected) > most) == written.endswith(b" bytes\n")
