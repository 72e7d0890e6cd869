"""Which fault the output of a command or an exception shows (requirements D 1.2 and D 1.4)."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchgate.errors import ConfigError, Mistake, OutOfTimeError, UndecidedError, UsageError
from patchgate.git.quoting import is_printable
from patchgate.runs.fault_reading import fault_of_error, fault_of_output
from patchgate.runs.phases import Phase
from patchgate.runs.triage import FaultClass, FaultKind, RunFault, classify, find_systemic

TESTS, CHECK, AUTHOR = FaultKind.TESTS_FAILED, FaultKind.CHECK_FAILED, FaultKind.AUTHOR_FAILED
EVERY = pytest.mark.parametrize("plain", [TESTS, CHECK, AUTHOR])


def read(
    output: bytes, plain: FaultKind = TESTS, exit_code: int | None = 1, component: str = "a"
) -> RunFault:
    return fault_of_output(output, component=component, phase=Phase.TESTS, exit_code=exit_code, plain=plain)


# pytest 9, its lines that matter; the others are before and after them.
COLLECTING = b"""\
collected 0 items / 1 error

==================================== ERRORS ====================================
__________________________ ERROR collecting test_b.py __________________________
%s
=========================== short test summary info ============================
ERROR test_b.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.48s ===============================
"""
FAILED = b"""\
    def test_it() -> None:
>       %s
E       assert 1 == 2

tests/test_a.py:3: AssertionError
1 failed, 3 passed in 0.02s
"""


@EVERY
def test_exit_code_75_is_a_temporary_failure_whatever_the_output(plain: FaultKind) -> None:
    found = read(b"E   ModuleNotFoundError: No module named 'x'\ntry later\n", plain, 75)
    assert (found.kind, found.sample) == (FaultKind.TEMPORARY, "try later")
    assert found.signature == read(b"", plain, 75, "b").signature


@EVERY
@pytest.mark.parametrize(
    ("output", "subject"),
    [
        (COLLECTING % b"E   ModuleNotFoundError: No module named 'requests'", "requests"),
        (COLLECTING % b"E   ModuleNotFoundError: No module named 'a.b'; 'a' is not a package", "a.b"),
        (b"ImportError: cannot import name 'gone' from 'os' (/usr/lib/os.py)\n", "os.gone"),
        (
            b"ImportError: cannot import name 'x' from partially initialized module 'm' (/m.py)\n",
            "m.x",
        ),
        (b"ImportError: libpq.so.5: cannot open shared object file: No such file\n", "libpq.so.5"),
        (b"ImportError: Failed to import test module: t\nModuleNotFoundError: No module named 'x'\n", "x"),
        (
            b"node:1210\n  throw err;\n\nError: Cannot find module 'left-pad'\nRequire stack:\n",
            "left-pad",
        ),
        (b"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /t/a.mjs\n", "zod"),
        (b"a.go:3:8: no required module provides package github.com/x/y; to add it:\n", "github.com/x/y"),
        (b"error[E0463]: can't find crate for `serde`\n", "serde"),
        (b"\\x1b[1m\\x1b[31mE   ModuleNotFoundError: No module named 'x'\\x1b[0m\n", "x"),
        (b"\x1b[31mE   ModuleNotFoundError: No module named 'x'\x1b[0m\r\n", "x"),
    ],
)
def test_the_signature_of_an_import_error_is_its_module(
    output: bytes, subject: str, plain: FaultKind
) -> None:
    found = read(output, plain, 2)
    assert (found.kind, found.subject) == (FaultKind.IMPORT_ERROR, subject)
    assert found.signature == f"import-error:{subject}"


@pytest.mark.parametrize(
    ("output", "exit_code"),
    [
        (b"collected 0 items\n\n============ no tests ran in 0.51s ============\n", 5),
        (b"\nno tests ran in 0.48s\n", 5),
        (b"3 deselected in 0.01s\n", 5),
        (b"\n", 5),
        (b"----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n", 5),
        (b"----\nRan 0 tests in 0.000s\n\nOK\n", 0),
        (b"?   \texample.com/a\t[no test files]\n", 0),
    ],
)
def test_tests_that_collect_nothing_are_read_from_output_and_exit_code(output: bytes, exit_code: int) -> None:
    found = read(output, TESTS, exit_code)
    assert found.kind is FaultKind.NOTHING_COLLECTED
    assert found.sample
    assert read(output, CHECK, exit_code).kind is CHECK


@pytest.mark.parametrize(
    ("output", "exit_code", "subject"),
    [
        (b"/usr/bin/python3: No module named pytest\n", 1, "python -m pytest"),
        (b"/t/venv/bin/python: No module named pytest\r\n", 1, "python -m pytest"),
        (b"sh: 1: pytest: not found\n", 127, "pytest"),
        (b"run.sh: line 3: pytest: command not found\n", 127, "pytest"),
        ("env: ‘pytest’: No such file or directory\n".encode(), 127, "pytest"),
        (b"make: pytest: No such file or directory\nmake: *** [Makefile:2: all] Error 127\n", 2, "pytest"),
        (b"zsh:1: command not found: pytest\n", 127, "pytest"),
    ],
)
def test_where_the_test_runner_is_missing_nothing_is_collected_and_it_is_named(
    output: bytes, exit_code: int, subject: str
) -> None:
    found = read(output, TESTS, exit_code)
    assert (found.kind, found.subject) == (FaultKind.NOTHING_COLLECTED, subject)
    assert found.signature == "nothing-collected"
    assert read(output, AUTHOR, exit_code).kind is FaultKind.MISSING_TOOL
    assert read(output, AUTHOR, exit_code).signature == f"missing-tool:{subject}"


@EVERY
@pytest.mark.parametrize(
    ("output", "signature"),
    [
        (b"fatal: Unable to create '/r/.git/index.lock': File exists.\n", "locked:index.lock"),
        (b"fatal: Unable to create '/r/.git/refs/heads/a.lock': File exists.\n", "locked:a.lock"),
        (b"sqlite3.OperationalError: database is locked\n", "locked:database"),
        (b"E: Could not get lock /var/lib/dpkg/lock-frontend. It is open\n", "locked:lock-frontend"),
        (b"urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n", "connection"),
        (b"fatal: unable to access 'https://a.b/': Could not resolve host: a.b\n", "connection"),
        (b"Error: connect ECONNREFUSED 127.0.0.1:1\n", "connection"),
        (b"E   httpx.ConnectError: all attempts failed\n", "connection"),
        (b"requests.exceptions.ConnectionError: HTTPSConnectionPool\n", "connection"),
        (b"TimeoutError: timed out\n", "time-out"),
        (b"E   httpx.ReadTimeout\n", "time-out"),
        (b"E   Failed: Timeout (>1.0s) from pytest-timeout.\n", "time-out"),
    ],
)
def test_locks_connections_and_time_outs_are_transient(
    output: bytes, signature: str, plain: FaultKind
) -> None:
    found = read(output, plain)
    assert found.signature == signature
    assert classify(found) is FaultClass.TRANSIENT


def test_a_busy_service_is_a_temporary_failure_of_an_author_alone() -> None:
    for line in (b"HTTP/1.1 429 Too Many Requests", b"anthropic: overloaded_error", b"Rate limit exceeded"):
        assert read(line, AUTHOR).kind is FaultKind.TEMPORARY
        assert read(line, TESTS).kind is TESTS


@pytest.mark.parametrize(
    "output",
    [
        FAILED % b"assert 1 == 2",
        FAILED % b"assert str(error) == 'ModuleNotFoundError: no'",
        COLLECTING % b"E   SyntaxError: invalid syntax",
        b"sh: 1: pytest: not found\n1 failed in 0.1s\n",
        b"",
        b"no module named x\n",
    ],
)
def test_a_test_that_failed_is_the_components_own_fault(output: bytes) -> None:
    found = read(output)
    assert found.kind is TESTS
    assert classify(found) is FaultClass.FAILED


@given(st.binary(max_size=300), st.sampled_from([TESTS, CHECK, AUTHOR]), st.integers(0, 255))
def test_output_never_shows_a_permanent_fault_and_its_sample_is_one_safe_line(
    output: bytes, plain: FaultKind, exit_code: int
) -> None:
    found = read(output, plain, exit_code)
    assert classify(found) is not FaultClass.PERMANENT
    assert all(map(is_printable, (found.sample + found.subject).replace("\t", "")))
    assert len(found.sample) <= 201


@EVERY
@pytest.mark.parametrize(
    "line",
    [b"OSError: [Errno 28] No space left on device", b"FileNotFoundError: [Errno 2] No such file: 'x'"],
)
def test_a_full_disk_or_missing_file_in_output_alone_does_not_fail_the_run(
    line: bytes, plain: FaultKind
) -> None:
    assert read(line, plain).kind is plain


def test_a_component_of_two_letters_is_left_out_of_the_signature() -> None:
    faults = [
        read(f"Error: nothing to do for {name}\n".encode(), AUTHOR, component=name)
        for name in ("db", "ui", "api")
    ]
    assert len({each.signature for each in faults}) == 1


def test_authors_that_fail_with_the_same_message_have_one_signature() -> None:
    said = b"Error: login expired for session %d (see /home/%s/log)\n"
    faults = [
        read(b"thinking about %s\n" % name.encode() + said % (at, name.encode()), AUTHOR, 1, name)
        for at, name in enumerate(("a", "b", "c"))
    ]
    assert len({each.signature for each in faults}) == 1
    found = find_systemic(faults, threshold=3, completed=3)
    assert found is not None
    assert found.recommendation == (
        "3 of 3 ended the same way (Error: login expired for session 0 (see /home/a/log)): "
        "fix the author command or its login, then git patchgate run resume"
    )
    assert read(b"Error: I cannot do this\n", AUTHOR).signature != faults[0].signature


def test_an_author_without_output_is_known_by_its_exit_code() -> None:
    assert read(b"", AUTHOR, 9).sample == "exit code 9"
    assert read(b"\n \n", AUTHOR, None).sample == ""


def test_of_long_output_the_end_is_read_in_linear_time() -> None:
    end = b"\nE   ModuleNotFoundError: No module named 'x'\n"
    assert read(b"x" * (4 << 20) + end).subject == "x"
    assert read(end + b"x" * (4 << 20)).kind is TESTS
    for line in (b"a" * (1 << 20), b"a." * (1 << 19), b"Unable to create '" * 50_000, b"a/" * (1 << 19)):
        assert len(read(line, AUTHOR).sample) == 201


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError("slow"), FaultKind.TIME_OUT),
        (OutOfTimeError("slow"), FaultKind.TIME_OUT),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), FaultKind.CONNECTION),
        (BrokenPipeError(errno.EPIPE, "gone"), FaultKind.CONNECTION),
        (BlockingIOError(errno.EAGAIN, "busy"), FaultKind.LOCKED),
        (FileNotFoundError(errno.ENOENT, "missing"), FaultKind.MISSING_FILE),
        (OSError(errno.ENOSPC, "full"), FaultKind.DISK_FULL),
        (OSError(errno.EDQUOT, "full"), FaultKind.DISK_FULL),
        (UsageError("no such component"), FaultKind.CONFIG),
        (ConfigError((Mistake("patchgate.toml", 1, "run", "wrong"),)), FaultKind.CONFIG),
        (OSError(errno.EIO, "broken"), None),
        (UndecidedError("a lock"), None),
        (ValueError("wrong"), None),
    ],
)
def test_the_kind_of_an_exception_is_known_or_none(error: Exception, kind: FaultKind | None) -> None:
    found = fault_of_error(error, component="a", phase=Phase.CONTRACT)
    assert (found.kind if found else None) is kind
    try:
        raise UndecidedError("it did not work") from error
    except UndecidedError as raised:
        around = fault_of_error(raised, component="a", phase=Phase.CONTRACT)
    assert (around.kind if around else None) is kind
    if around is not None:
        assert (around.component, around.phase, around.sample) == ("a", Phase.CONTRACT, "it did not work")


@pytest.mark.parametrize(
    ("command", "signature"),
    [
        (["-m", "pytest", "-q", "empty"], "nothing-collected"),
        (["-m", "pytest", "-q", "test_import.py"], "import-error:no_such_module"),
        (["-m", "no_such_tool"], "nothing-collected"),
        (["-c", "import os; os.execlp('sh', 'sh', '-c', 'no_such_tool -q')"], "nothing-collected"),
        (["-c", "import os; os.execlp('git', 'git', 'add', '-A')"], "locked:index.lock"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_tools_really_write_is_read(command: list[str], signature: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "test_import.py").write_text("import no_such_module\n", encoding="utf-8")
    if signature == "locked:index.lock":
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        (tmp_path / ".git" / "index.lock").touch()
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert read(ended.stdout + ended.stderr, TESTS, ended.returncode).signature == signature
