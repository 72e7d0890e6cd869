"""Bad input through the command: a clear sentence, the right exit code, no traceback, nothing raw.

Issue "Check", section "Bad input".
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.world import EXECUTABLE, Answer, Repo

FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab", "junit")
EVERY_MISTAKE = """\
[policy]
deny = ["[", "!keep", "a*b*c*d*e*f", "[[:alpha:]]"]
deny_prefixes = ["/absolute"]
deny_sufixes = [".exe"]
[policy.commit]
max_files = "five"
[content]
deny = ["(", "(a+)+$"]
[rules]
path-control = "off"
deny-prefx = "error"
"""
MISTAKES = (
    (2, "policy.deny[0]", " [ "),
    (2, "policy.deny[1]", "negation"),
    (2, "policy.deny[2]", "more than 4 "),
    (2, "policy.deny[3]", "[[:class:]]"),
    (3, "policy.deny_prefixes[0]", "relative"),
    (4, "policy.deny_sufixes", "`deny_sufixes`"),
    (6, "policy.commit.max_files", '"five"'),
    (8, "content.deny[0]", "regular expression"),
    (8, "content.deny[1]", "repeat"),
    (10, "rules.path-control", "invariant"),
    (11, "rules.deny-prefx", "unknown rule `deny-prefx`"),
)


def tells(text: str, line: int, key: str, word: str) -> bool:
    """Whether a text has a mistake of the policy on one line: its place, its key and what is wrong."""
    return re.search(rf"patchgate\.toml:{line}: {re.escape(key)}: .*{re.escape(word)}", text) is not None


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit."""
    made = Repo.create(tmp_path)
    made.commit({"a.py": "one\n"})
    return made


def plain(answer: Answer) -> Answer:
    """Hold what holds for every answer against this one: no traceback, nothing that a terminal obeys."""
    for text in (answer.out, answer.err):
        assert "Traceback" not in text
        assert "patchgate itself failed" not in text
        assert [character for character in text if character < " " and character not in "\n\t"] == []
        assert not set("\x7f\x9b\u202e\u2066\u2028") & set(text)
    return answer


def test_a_folder_that_is_no_repository_is_told_in_a_sentence(repo: Repo, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for arguments in (["check"], ["init", "--yes"], ["policy", "show"], ["explain", "--path", "x"]):
        answer = plain(repo.cli(*arguments, cwd=elsewhere))
        assert (answer.code, answer.out) == (2, "")
        first, second = answer.err.splitlines()
        assert first.startswith("error: not a git repository")
        assert second.startswith("help: ")


def test_a_directory_that_is_missing_or_a_file_is_told_with_its_name(repo: Repo) -> None:
    for place, shown in (("no/such/folder",) * 2, ("a.py",) * 2, ("esc\x1b[31m\u202e", "esc")):
        answer = plain(repo.cli("-C", place, "check"))
        assert answer.code == 2
        assert answer.err.startswith("error: ")
        assert shown in answer.err


def test_a_broken_repository_is_undecided(repo: Repo) -> None:
    (repo.path / ".git" / "HEAD").write_bytes(b"nonsense")
    answer = plain(repo.cli("check"))
    assert answer.code in {2, 3}
    assert answer.err.startswith("error: ")


def test_a_missing_object_is_undecided(repo: Repo) -> None:
    tree = repo.ask("rev-parse", "HEAD^{tree}")
    (repo.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    repo.stage({"b.py": "two\n"})
    answer = plain(repo.cli("check"))
    assert answer.code == 3
    assert "undecided" in answer.out + answer.err


def test_a_missing_git_is_told(repo: Repo, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = plain(repo.run("check", PATH=str(empty)))
    assert answer.code == 3
    first, second = answer.err.splitlines()[:2]
    assert first.startswith("error: git ")
    assert second.startswith("help: install git")


def test_every_mistake_of_a_config_is_told_at_once_each_with_its_line(repo: Repo) -> None:
    repo.policy(EVERY_MISTAKE)
    repo.stage({"b.py": "two\n"})
    for arguments in (["check", "--all", "--policy-from", "HEAD"], ["check", "--all"], ["policy", "show"]):
        answer = plain(repo.cli(*arguments))
        assert (answer.code, answer.out) == (2, "")
        assert all(f"error: patchgate.toml:{line}: {key}: " in answer.err for line, key, _ in MISTAKES)
        assert all(tells(answer.err, *mistake) for mistake in MISTAKES)
    document = repo.check("--all", "--policy-from", "HEAD").error
    assert document["kind"] == "config"
    told = [(each["line"], each["key"]) for each in document["mistakes"]]
    assert told == [(line, key) for line, key, _ in MISTAKES]


def test_a_base_policy_that_cannot_be_read_leaves_other_changes_undecided_and_says_why(repo: Repo) -> None:
    repo.policy(EVERY_MISTAKE)
    repo.stage({"b.py": "two\n"})
    answer = plain(repo.cli("check"))
    assert answer.code == 3
    # Every mistake, as far as there is room.
    assert "patchgate.toml:2: " in answer.out
    assert "patchgate.toml:10: " in answer.out
    assert "accepted" not in answer.out


def test_a_proposed_policy_with_mistakes_is_refused_with_each_of_them(repo: Repo) -> None:
    repo.stage({"patchgate.toml": EVERY_MISTAKE})
    answer = repo.check()
    assert (answer.code, set(answer.rules)) == (1, {"policy-invalid"})
    said = "\n".join(finding["message"] for finding in answer.findings)
    assert all(tells(said, *mistake) for mistake in MISTAKES)


HOSTILE_CONFIGS = {
    "10 MB": (b"#" * 10_000_000, "bytes; the limit is 65,536"),
    "deep lists": (b"a = " + b"[" * 60_000, "nested more than 32 deep"),
    "deep tables": (b"a = " + b"{a=" * 20_000, "nested more than 32 deep"),
    "20,000 parts": (b"a" + b".a" * 20_000 + b" = 1\n", "a dotted key has more than 32 parts"),
    "many keys": (b"".join(b"k%d = 1\n" % number for number in range(6_000)), "keys"),
    "a long number": (b"a = " + b"9" * 60_000 + b"\n", "a number is too long"),
    "not UTF-8": (b'[policy]\ndeny = ["\xff"]\n', "not UTF-8"),
    "NUL": (b"[policy]\n\0\n", "NUL byte"),
    "a byte-order mark": (b"\xef\xbb\xbf[policy]\n", "byte-order mark"),
    "no TOML": (b"this is not toml\n", "not valid TOML"),
    "escapes": (b'[policy]\n"\\u001b[31m\\u202e" = 1\n', "unknown key"),
}


@pytest.mark.parametrize("case", list(HOSTILE_CONFIGS))
def test_a_hostile_config_is_one_sentence_wherever_it_stands(repo: Repo, case: str) -> None:
    content, sentence = HOSTILE_CONFIGS[case]
    repo.stage({"patchgate.toml": content})
    proposed = plain(repo.cli("check"))
    assert proposed.code == 1
    assert "error[policy-invalid]" in proposed.out
    assert sentence in proposed.out
    repo.commit()
    repo.stage({"b.py": "two\n"})
    for arguments in ((), ("--policy-from", "HEAD")):
        judged = plain(repo.cli("check", *arguments))
        assert judged.code == 3
        assert sentence in judged.out
    assert plain(repo.cli("init", "--yes")).code == 2


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_and_lines_never_reach_the_output_raw(repo: Repo, form: str) -> None:
    names = [
        b"esc\x1b[31m.py",
        b"bell\x07",
        b"new\nline",
        b"return\r",
        b"c1\xc2\x9b31m",
        b"not-utf8-\xff\xfe",
        "bidi\u202egnp.exe".encode(),
        "isolate\u2066x\u2069".encode(),
        "separator\u2028x".encode(),
        b"::error::x",
        b"##[error]x",
    ]
    for name in names:
        repo.write(name, "<<<<<<< \x1b]0;title\x07 \u202e\n")
    repo.write("quiet.py", b"<<<<<<< HEAD \x1b[2J\xff\xe2\x80\xae\r\n")
    repo.stage()
    for options in ([], ["--all"], ["--worktree"]):
        answer = plain(repo.run("check", "--format", form, *options))
        assert answer.code == 1
        if form == "github":
            commands = [line.split(" ", 1)[0] for line in answer.out.splitlines() if line.startswith("::")]
            assert set(commands) <= {"::error", "::warning", "::notice"}
            assert not [line for line in answer.out.splitlines() if line.startswith("##[")]


def test_hostile_arguments_never_reach_the_output_raw(repo: Repo) -> None:
    nasty = "esc\x1b[31m\u202e"
    for arguments in (
        ["check", nasty],
        ["check", f"HEAD..{nasty}"],
        ["check", "HEAD", nasty],
        ["check", f"--{nasty}"],
        ["check", "--format", nasty],
        ["check", "--policy-from", nasty],
        ["explain", nasty],
        ["explain", "--path", nasty, "--policy-from", nasty],
        [nasty],
        ["schema", nasty],
    ):
        answer = plain(repo.cli(*arguments))
        assert answer.code == 2, arguments
        assert answer.err
    assert plain(repo.cli("explain", "--path", nasty)).code == 0
    repo.policy("[policy]\n")
    repo.git("branch", "bidi\u202e")
    assert plain(repo.cli("policy", "show", "--policy-from", "bidi\u202e")).code == 0
    assert plain(repo.cli("explain", "--path", "a.py", "--policy-from", "bidi\u202e")).code == 0


def test_bytes_that_are_no_text_as_arguments_are_a_sentence(repo: Repo) -> None:
    for arguments in ([b"check", b"\xff"], [b"explain", b"\xff"], [b"-C", b"\xff", b"check"], [b"\xff"]):
        done = subprocess.run(
            [EXECUTABLE, *arguments], cwd=repo.path, env=repo.env, capture_output=True, check=False
        )
        assert done.returncode == 2, arguments
        assert b"Traceback" not in done.stderr
        assert b"\xff" not in done.stdout + done.stderr


def test_nothing_that_is_checked_leaves_anything_in_the_working_tree_index_or_refs(repo: Repo) -> None:
    """Promise 5: checking writes nothing to the working tree, the index, the refs or the stash."""
    repo.policy('[policy]\ndeny_prefixes = ["runs"]\n')
    repo.commit({"b.py": "two\n"})
    repo.stage({"runs/x": "no\n", "c.py": "three\n"})
    repo.write("untracked", "u\n")

    def state() -> tuple[object, ...]:
        kept = repo.path / ".git" / "index"
        files = {
            path: (path.lstat().st_mtime_ns, path.lstat().st_size)
            for path in repo.path.rglob("*")
            if ".git/patchgate" not in str(path) and path.is_file()
        }
        return kept.read_bytes(), kept.stat().st_mtime_ns, repo.git("for-each-ref"), files

    before = state()
    for options in ([], ["--worktree"], ["--all"], ["HEAD"], ["HEAD~1..HEAD"], ["--policy-from", "HEAD~1"]):
        repo.cli("check", *options)
    assert state() == before
