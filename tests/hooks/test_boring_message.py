"""commit-msg in sh: a message that it takes for boring is one of which no rule says anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate import __version__
from patchgate.check.message_rules import CUT_LINE, Cleanup, Message, clean, examine, is_abandoned
from patchgate.check.vague_phrases import phrases
from patchgate.hooks.install import hook_script
from tests.hooks.hook_world import Recorder, install
from tests.world import Repo

SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]
IS_LONG = bool(os.environ.get("PATCHGATE_LONG"))
EDITORS = (":", "vi")
MODES = (None, "strip", "whitespace", "verbatim", "scissors")
COMMENTS = (b"#", b";", b"-", b"//", None)
EXPLAINED = b"#" + CUT_LINE + b"# Do not modify or remove the line above.\n"

# Taken out of the shim as it is installed: the functions, without what they are called from.
_TEXT = hook_script("commit-msg", "/nowhere", "mend").decode("utf-8")
FUNCTIONS = _TEXT[_TEXT.index("is_boring() {") : _TEXT.index('if [ -z "${PATCHGATE_FULL-}')]
DRIVER = f"""nl='
'
{FUNCTIONS}
for file; do
    if is_boring "$file"; then echo boring; else echo other; fi
done
"""


def boring(shell: str, messages: Sequence[bytes], editor: str = ":", **env: str) -> list[bool]:
    """Ask the shim's own functions about many messages at once."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{number}" for number in range(len(messages))]
        for name, message in zip(names, messages, strict=True):
            Path(folder, name).write_bytes(message)
        options = ["--posix"] if shell == "bash" else []
        done = subprocess.run(
            [shell, *options, "-c", DRIVER, shell, *names],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "GIT_EDITOR": editor, **env},
            capture_output=True,
            check=True,
        )
    answers = done.stdout.decode("ascii").split()
    assert len(answers) == len(messages)
    return [answer == "boring" for answer in answers]


def findings(raw: bytes, editor: str) -> Iterator[str]:
    """Name what the gate finds in a message, for every way in which git may be told to clean it."""
    for mode, comment, verbose in product(MODES, COMMENTS, (False, True)):
        if comment not in (b"#", None) and CUT_LINE in raw:
            # No git writes its scissors line with another character than it then looks for.
            continue
        text = clean(raw, Cleanup(mode, comment, verbose), edited=editor != ":")
        if not is_abandoned(text):
            yield from (finding.rule for finding in examine(Message(text)))


WORDS = (
    *(
        "a",
        "and",
        "as",
        "best",
        "clean",
        "entire",
        "etc",
        "my",
        "more",
        "needed",
        "properly",
        "robust",
        "class",
    ),
    *(
        "class",
        "scalable",
        "practice",
        "industry",
        "standard",
        "machine",
        "architecture",
        "handle",
        "maintainable",
    ),
    *("reliable", "works", "on", "of", "fetch", "Etcd", "sketch_etc", "path/etc", "etc.", "etc)", "moreover"),
    *("industry-standard", "thousand", "and.", "(and", '"best', 'practice"', "`etc`", "the", "parser", "4"),
)
JOINTS = (
    " ",
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\n\n",
    " \n",
    "\n  ",
    "\n# x\n",
    "\n#\n",
    "\n; x\n",
    "\n- ",
    "\n\n\n",
)
ODD = ("\t", "\r\n", "é", "\x1b", "\n```\n", "\n> ", "\n    ", ".\n", "\n#" + "y" * 90 + "\n", "\n// z\n")
ENDS = (
    "",
    "\n",
    ".",
    "..",
    ". \n",
    "\n\n",
    "\n\nSigned-off-by: A <a@b>\n",
    "\n\n# Please enter the commit message for your changes.\n# Lines with '#' will be\n#\n#\tmodified: é\n",
    "\n" + EXPLAINED.decode("ascii") + "# All below\ndiff --git a/a b/a\n+best practice, etc.\n",
    "\n#" + CUT_LINE.decode("ascii") + "best practice\n",
)


STARTS = ("\n\n", "\n\n", "\n\n", "\n\n", "\n\n", "", "\n", " " + "x" * 66, " " + "y" * 70)
CASINGS: tuple[Callable[[str], str], ...] = (str, str, str, str.upper, str.title)


def message(seed: int) -> bytes:
    """Write a message between the ordinary and what is just not."""
    draw = Random(seed)
    casing = draw.choice(CASINGS)
    pieces = [casing(draw.choice(WORDS)), draw.choice(STARTS)]
    for _ in range(draw.randrange(9)):
        if draw.randrange(6):
            pieces.append(casing(draw.choice(WORDS)))
        else:
            pieces.append(draw.choice(JOINTS).join(draw.choice(phrases()).name.split(" ")))
        pieces.append(draw.choice(JOINTS if draw.randrange(20) else ODD))
    return ("".join(pieces) + draw.choice(ENDS)).encode("utf-8")


@pytest.mark.sweep(2)
@pytest.mark.parametrize(("shell", "editor"), list(product(SHELLS, EDITORS)))
def test_what_sh_takes_for_boring_no_rule_speaks_of(shell: str, editor: str) -> None:
    seen: list[int] = []

    @settings(max_examples=400 if IS_LONG else 5, deadline=None, database=None)
    @given(st.integers(0, 1 << 40))
    def holds(seed: int) -> None:
        batch = [message(seed + number) for number in range(400)]
        answers = boring(shell, batch, editor)
        seen.append(sum(answers))
        for text, is_boring in zip(batch, answers, strict=True):
            assert not is_boring or (text, list(findings(text, editor))) == (text, [])

    holds()
    # Otherwise nothing was tried.
    assert sum(seen) > 100


@pytest.mark.parametrize("shell", SHELLS)
def test_every_form_of_every_phrase_is_seen_in_sh(shell: str) -> None:
    """Each phrase by its words, with every kind of gap that may stand between two of them."""
    gaps = (" ", "   ", "\n", " \n  ", "\n; dropped\n", "\n# dropped\n", "\n# a\n# b\n")
    found = []
    for phrase in phrases():
        words = phrase.name.removesuffix(".").split(" ")
        for gap, change in product(gaps, CASINGS[2:]):
            text = change(gap.join(words))
            found += [f"Say it\n\nThis is {text}.\n".encode(), f"Say it\n\n{text}\n\n# x\n".encode()]
            if "\n" not in text:
                found += [f"Now {text}\n".encode(), f"Now, {text})\n".encode()]
    assert [each for each, is_boring in zip(found, boring(shell, found), strict=True) if is_boring] == []


TEMPLATE = b"""
# Please enter the commit message for your changes. Lines starting
# with '#' will be ignored, and an empty message aborts the commit.
#
# On branch gr\xc3\xbcn
# Changes to be committed:
#\tmodified:   best practice, etc.
#
"""
ORDINARY = [
    b"Fix the parser",
    b"Fix the parser\n",
    b"gates: a rename out of a denied folder is refused (#12)\n",
    b"a" * 72 + b"\n",
    b"Subject\n\nbody\n",
    b"Fetch the machine's list once more\n\nAn etcd client needed a sketch, and\nthat is all.\n\n- one\n",
    b"Subject\n" + TEMPLATE,
    b"Subject\n\nA body of its own.\n" + TEMPLATE,
    b"Subject\n\nSigned-off-by: A <a@b.c>\n",
]
OTHER = [
    b"",
    b"\n",
    b"\nSubject\n",
    TEMPLATE,
    b"# Subject\n",
    b"Subject.\n",
    b"Subject. \n",
    b"Subject ending \n",
    b"a" * 73 + b"\n",
    b"Subject\nbody\n",
    b"Subject\n body\n",
    b"Subject\n# body\n",
    "Größe\n".encode(),
    "Subject\n\nGröße\n".encode(),
    b"Sub\tject\n",
    b"Subject\r\n",
    b"Subject\n\n\x1b[31m\n",
    b"Subject\n\n" + b"a\n" * 101,
    b"Subject\n\n" + b"a" * 8001,
    b"Subject\n\n#" + b"a" * 8001,
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("locale", [None, "C.UTF-8", "en_US.UTF-8", "nonsense"])
def test_ordinary_messages_are_boring_and_others_are_not(shell: str, locale: str | None) -> None:
    env = {} if locale is None else {"LC_ALL": locale}
    for editor in EDITORS:
        assert boring(shell, ORDINARY, editor, **env) == [True] * len(ORDINARY)
        assert boring(shell, OTHER, editor, **env) == [False] * len(OTHER)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_diff_below_git_s_scissors_line_is_no_part_of_a_message_that_was_edited(shell: str) -> None:
    diff = b"diff --git a/a b/a\n+\tbest practice\n" * 300
    text = b"Subject\n" + TEMPLATE + EXPLAINED + b"# All of it\n" + diff
    assert boring(shell, [text], "vi") == [True]
    assert boring(shell, [text], ":") == [False]
    assert boring(shell, [text.replace(b"# Do not", b"Do not")], "vi") == [False]
    # Only the first such line is git's.
    assert boring(shell, [b"Subject\n\n#" + CUT_LINE + b"x\n" + EXPLAINED + diff], "vi") == [False]


def activate(repo: Repo, line: str = f"1 {__version__} {sys.executable}\n") -> None:
    """Write what tells the shims that a patchgate is at work here."""
    repo.write(".git/patchgate/fast/active", line)


@pytest.fixture
def watched(tmp_path: Path) -> tuple[Repo, Recorder]:
    """The installed shims, the recorder behind them, and something staged."""
    repo, recorder = Repo.create(tmp_path / 'it\'s "here"'), Recorder(tmp_path)
    install(repo, recorder)
    repo.stage({"a": "1\n"})
    activate(repo)
    return repo, recorder


def judged(recorder: Recorder) -> bool:
    return any(each.startswith("commit-msg") for each in recorder.asked)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_installed_hook_ends_in_sh_for_a_boring_message_alone(
    watched: tuple[Repo, Recorder], shell: str
) -> None:
    repo, recorder = watched
    for message, is_boring in (("Subject", True), ("Subject.", False), ("A\n\nBest practices", False)):
        place = repo.write("message", message)
        done = subprocess.run(
            [shell, ".git/hooks/commit-msg", str(place)],
            cwd=repo.path,
            env={**repo.env, "IFS": "abc", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert judged(recorder) is not is_boring
        recorder.forget()


def test_an_ordinary_commit_asks_nobody_about_its_message(watched: tuple[Repo, Recorder]) -> None:
    repo, recorder = watched
    repo.git("commit", "-q", "-m", "Subject", "-m", "Body.")
    assert not judged(recorder)
    repo.git("commit", "-q", "--amend", "-v", GIT_EDITOR="true")
    assert not judged(recorder)


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"2 {__version__} {sys.executable}\n",
        f"1 {__version__} python\n",
        f"1 ../x {sys.executable}\n",
        "1 1.0\n",
    ],
)
def test_where_no_patchgate_is_known_to_be_at_work_the_message_is_judged(
    watched: tuple[Repo, Recorder], line: str
) -> None:
    repo, recorder = watched
    activate(repo, line)
    repo.git("commit", "-q", "-m", "Subject")
    assert judged(recorder)


@pytest.mark.parametrize("name", ["PATCHGATE_FULL", "PATCHGATE_SKIP", "PATCHGATE_WITNESS"])
def test_who_asks_for_the_full_tier_gets_it(watched: tuple[Repo, Recorder], name: str) -> None:
    repo, recorder = watched
    repo.env[name] = str(repo.path / "why")
    repo.git("commit", "-q", "-m", "Subject")
    assert judged(recorder)


def test_a_chained_hook_may_refuse_a_boring_message(watched: tuple[Repo, Recorder]) -> None:
    repo, recorder = watched
    chained = repo.write(".git/hooks/commit-msg.patchgate-prev", "#!/bin/sh\nexit 1\n", executable=True)
    assert repo.try_git("commit", "-q", "-m", "Subject").returncode != 0
    chained.write_text('#!/bin/sh\necho Subject. >"$1"\n', encoding="utf-8")
    repo.git("commit", "-q", "-m", "Subject")
    assert judged(recorder)


def test_the_functions_are_taken_out_of_the_shim_whole() -> None:
    names = re.findall(r"^([a-z_]+)\(\) \{$", FUNCTIONS, re.MULTILINE)
    assert names == ["is_boring", "is_plain", "is_suspect"]
