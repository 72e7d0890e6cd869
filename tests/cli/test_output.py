"""What is printed where: formats, colours, quiet, the two streams, and readers that go away."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import pytest

from patchgate.cli.progress import Progress
from tests.sessions.past import clone
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

MARKER = "<<<<<<< HEAD\n"
FORMATS = ("full", "text", "concise", "json", "sarif", "github", "gitlab", "junit")
ESC = "\x1b"


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n"})
    return made


@pytest.fixture
def refused(repo: Repo) -> Repo:
    """A repository with a staged change that is refused."""
    repo.stage({"bad.py": MARKER})
    return repo


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_goes_to_standard_output_alone_and_keeps_the_exit_code(refused: Repo, form: str) -> None:
    answer = refused.run("check", "--format", form)
    assert (answer.code, answer.err) == (1, "")
    assert "conflict-marker" in answer.out
    assert answer.out.endswith("\n")


def test_formats_for_machines_are_what_they_say(refused: Repo) -> None:
    assert json.loads(refused.cli("check", "--format", "json").out)["verdict"] == "rejected"
    assert json.loads(refused.cli("check", "--format", "sarif").out)["version"] == "2.1.0"
    assert json.loads(refused.cli("check", "--format", "gitlab").out)[0]["check_name"] == "conflict-marker"
    assert ET.fromstring(refused.cli("check", "--format", "junit").out).attrib["failures"] == "1"
    assert refused.cli("check", "--format", "github").out.startswith(
        "::error title=conflict-marker,file=bad.py"
    )


def test_a_refusal_in_text_names_rule_place_line_help_and_ends_with_the_verdict(refused: Repo) -> None:
    """design 4: the help of the finding, that of the report, the verdict, in this order."""
    lines = refused.cli("check").out.splitlines()
    assert lines[0].startswith("error[conflict-marker]: ")
    assert lines[1] == " --> bad.py:1"
    assert "1 | <<<<<<< HEAD" in lines
    helps = [line for line in lines if line.startswith("help: ")]
    assert "conflict" in helps[0]
    assert "patchgate: allow conflict-marker REASON" in helps[1]
    assert lines[-1].startswith("rejected: 1 error in 1 file")


def test_text_is_the_full_format(refused: Repo) -> None:
    assert refused.cli("check", "--format", "text").out == refused.cli("check").out


def test_an_accepted_change_is_told_in_one_line(repo: Repo) -> None:
    repo.stage({"b.py": "two\n"})
    assert repo.cli("check").out == "accepted: 1 file, no findings\n"


def test_quiet_says_nothing_of_an_accepted_change_and_everything_of_a_refused_one(repo: Repo) -> None:
    repo.stage({"b.py": "two\n"})
    for form in ("full", "concise"):
        answer = repo.run("check", "-q", "--format", form)
        assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert json.loads(repo.cli("check", "-q", "--format", "json").out)["verdict"] == "accepted"
    repo.stage({"bad.py": MARKER})
    assert "conflict-marker" in repo.cli("check", "-q").out


def test_verbose_adds_ids_gates_and_budgets(repo: Repo) -> None:
    repo.stage({"b.py": "two\n"})
    out = repo.cli("check", "-v").out
    report = repo.check().change
    for part in (report["id"], report["policy"]["digest"], "governance:", "max_files: 1 used, limit 50"):
        assert part in out


@pytest.mark.parametrize(
    ("options", "variables", "colored"),
    [
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ([], {"FORCE_COLOR": ""}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color", "never"], {"FORCE_COLOR": "1"}, False),
        (["--color", "auto"], {}, False),
    ],
)
def test_colour_follows_the_option_then_the_environment_then_the_terminal(
    refused: Repo, options: list[str], variables: dict[str, str], colored: bool
) -> None:
    answer = Repo(refused.path, refused.env | variables).cli("check", *options)
    assert (ESC in answer.out) is colored
    assert "rejected: 1 error" in answer.out.replace(f"{ESC}[1;31m", "").replace(f"{ESC}[0m", "")


def on_a_terminal(
    repo: Repo, command: Sequence[str | Path] = (EXECUTABLE, "check"), code: int = 1, **variables: str
) -> bytes:
    """Run a command with both outputs on a pseudo-terminal, and give what the terminal got."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        command,
        cwd=repo.path,
        env=repo.env | variables,
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    ) as process:
        os.close(theirs)
        got = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                # Linux says so when the last writer has closed its side.
                break
            if not part:
                break
            got += part
        os.close(ours)
        assert process.wait() == code
    return got


def test_a_terminal_gets_colour_unless_it_is_dumb_or_the_user_wants_none(refused: Repo) -> None:
    assert ESC.encode() in on_a_terminal(refused, TERM="xterm-256color")
    assert ESC.encode() not in on_a_terminal(refused, TERM="dumb")
    assert ESC.encode() not in on_a_terminal(refused, TERM="xterm-256color", NO_COLOR="1")


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def counted(monkeypatch: pytest.MonkeyPatch, *moments: tuple[float, int], **environ: str) -> str:
    """Report at some seconds how many of 1,000 commits are checked; give what is written."""
    clock, written = Clock(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(written, "isatty", lambda: "TERM" in environ, raising=False)
    for name in ("TERM", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with Progress(quiet=False, clock=clock) as progress:
        for clock.now, done in moments:
            progress.count(done, 1_000)
    return written.getvalue()


def test_what_takes_less_than_half_a_second_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(monkeypatch, (0.1, 100), (0.4, 1_000), TERM="xterm") == ""


def test_long_work_on_a_terminal_is_one_line_that_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = ((0.6, 100), (0.61, 110), (4.0, 500), (8.0, 1_000))
    erase = "\r\x1b[K"
    first, second, third, last = counted(monkeypatch, *moments, TERM="xterm").split(erase)[1:]
    assert "100 of 1,000 commits" in first
    assert "500 of 1,000 commits checked, about 4 s left" in second
    assert second.startswith("##########..........")
    assert "1,000 of 1,000" in third
    assert last == ""


@pytest.mark.parametrize("environ", [{}, {"TERM": "dumb"}, {"TERM": "xterm", "CI": "true"}])
def test_elsewhere_long_work_writes_a_plain_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    moments = ((0.6, 100), (9.0, 300), (10.5, 400), (12.0, 500), (21.0, 900))
    lines = counted(monkeypatch, *moments, **environ).splitlines()
    assert [line.split(" of ")[0] for line in lines] == ["400", "900"]


def test_a_report_is_never_behind_what_was_counted(tmp_path: Path) -> None:
    repo = clone(tmp_path)
    first = repo.ask("rev-list", "--max-parents=0", "HEAD")
    check = (EXECUTABLE, "check", f"{first}..HEAD")
    got = on_a_terminal(repo, check, TERM="xterm")
    assert b"checked" not in got.rpartition(b"\r\x1b[K")[2]
    assert b"commits checked" not in on_a_terminal(repo, (*check, "-q"), TERM="xterm")


def test_colour_changes_no_word(refused: Repo) -> None:
    plain = refused.cli("check").out
    colored = refused.cli("check", "--color", "always").out
    assert "".join(part.split("m", 1)[1] if n else part for n, part in enumerate(colored.split(ESC))) == plain


def test_more_than_twenty_findings_are_summed_up_in_text_and_never_in_json(repo: Repo) -> None:
    repo.stage({f"f{number:02}": MARKER for number in range(25)})
    out = repo.cli("check").out
    assert out.count("error[conflict-marker]") == 20
    assert "… and 5 more: 5 conflict-marker" in out
    assert "rejected: 25 errors in 25 files" in out
    assert len(repo.check().findings) == 25
    assert len(json.loads(repo.cli("check", "--format", "sarif").out)["runs"][0]["results"]) == 25
    assert repo.cli("check", "--format", "concise").out.count("error conflict-marker") == 25


def test_twenty_findings_are_all_written_out(repo: Repo) -> None:
    repo.stage({f"f{number:02}": MARKER for number in range(20)})
    out = repo.cli("check").out
    assert out.count("error[conflict-marker]") == 20
    assert "more:" not in out


@pytest.mark.parametrize("form", ["full", "json"])
def test_a_reader_that_went_away_changes_no_verdict(refused: Repo, form: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [EXECUTABLE, "check", "--format", form],
        cwd=refused.path,
        env=refused.env,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_help_into_a_closed_pipe_is_no_failure(repo: Repo) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [EXECUTABLE, "-h"], env=repo.env, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_closed_streams_change_no_verdict(refused: Repo) -> None:
    script = '"$1" check >&- 2>&- <&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", EXECUTABLE], cwd=refused.path, env=refused.env, check=False
    )
    assert done.returncode == 1
    script = '"$1" check no-such-revision 2>&-'
    done = subprocess.run(
        ["sh", "-c", script, "sh", EXECUTABLE], cwd=refused.path, env=refused.env, check=False
    )
    assert done.returncode == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["check"], ["check", "--format", "json"], ["-h"]])
def test_a_report_that_cannot_be_written_is_no_acceptance(repo: Repo, arguments: list[str]) -> None:
    repo.stage({"b.py": "two\n"})
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [EXECUTABLE, *arguments],
            cwd=repo.path,
            env=repo.env,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
    ],
)
def test_names_that_the_locale_cannot_show_crash_nothing(repo: Repo, variables: dict[str, str]) -> None:
    repo.write(b"not-utf8-\xff.py", MARKER)
    repo.stage({"ünïcode-日本.py": MARKER})
    # Each form is written under the first; under the others, one for people and one for programs.
    for form in FORMATS if variables == {"LC_ALL": "C"} else ("full", "json"):
        done = subprocess.run(
            [EXECUTABLE, "check", "--format", form],
            cwd=repo.path,
            env=repo.env | variables,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (1, b""), form
        assert b"rejected" in done.stdout or form in {"gitlab", "sarif", "junit"}
        if form in {"json", "sarif", "gitlab"}:
            json.loads(done.stdout)
        if form == "junit":
            assert "ünïcode-日本.py" in "".join(ET.fromstring(done.stdout).itertext())
