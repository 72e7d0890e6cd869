"""`git patchgate fix`: what it takes from the commands, what it leaves, and what it refuses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from patchgate.errors import UndecidedError
from tests.apply.fix_world import POLICY, Fixer, content, make, staged, state
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a formatter."""
    return make(tmp_path)


def lines_of(repo: Repo, name: str) -> list[str]:
    return (repo.path / name).read_text().splitlines()


def test_the_index_and_the_working_tree_get_the_fix(repo: Repo) -> None:
    repo.stage({"src/f0.py": "a=1\n", "src/new.py": "b=2\n"})
    answer = repo.cli("fix")
    assert answer.code == 0, answer.err
    assert lines_of(repo, "src/f0.py") == ["a = 1"]
    assert lines_of(repo, "src/new.py") == ["b = 2"]
    assert repo.ask("status", "--short").splitlines() == ["M  src/f0.py", "A  src/new.py"]
    assert "src/f0.py" in answer.err
    assert "src/new.py" in answer.err
    assert repo.cli("fix").code == 0


def test_unstaged_edits_stay_and_the_lines_where_they_meet_a_fix_are_named(repo: Repo) -> None:
    repo.stage({"src/f0.py": content("a=1", "b", "c", "d", "e", "f=6")})
    repo.write("src/f0.py", content("a=1", "b", "c", "mine=3", "d", "e", "f=mine"))
    answer = repo.cli("fix")
    assert answer.code == 0, answer.err
    assert lines_of(repo, "src/f0.py") == ["a = 1", "b", "c", "mine=3", "d", "e", "f=mine"]
    assert staged(repo)["src/f0.py"] == content("a = 1", "b", "c", "d", "e", "f = 6").encode()
    assert "src/f0.py:7" in answer.err


def test_only_changed_files_that_match_are_fixed(repo: Repo) -> None:
    repo.commit({"src/old.py": "old=1\n"})
    repo.stage({"src/f0.py": "a=1\n", "notes.txt": "a=2\n"})
    repo.write("src/f1.py", "unstaged=1\n")
    result = Fixer(repo).fix()
    assert [path.raw for path in result.paths] == [b"src/f0.py"]
    assert lines_of(repo, "src/f1.py") == ["unstaged=1"]
    assert lines_of(repo, "src/old.py") == ["old=1"]
    assert lines_of(repo, "notes.txt") == ["a=2"]


def test_a_dry_run_prints_a_patch_that_git_applies_and_changes_nothing(repo: Repo) -> None:
    repo.stage({"src/f0.py": "a=1\n"})
    (repo.path / "src/f1.py").write_bytes(b"a=1\nnot UTF-8: \xff\n")
    repo.git("add", "src/f1.py")
    before = state(repo)
    done = subprocess.run(
        [EXECUTABLE, "fix", "--dry-run"], cwd=repo.path, env=repo.env, capture_output=True, check=True
    )
    assert state(repo) == before
    repo.git("apply", "--index", stdin=done.stdout)
    assert lines_of(repo, "src/f0.py") == ["a = 1"]
    assert (repo.path / "src/f1.py").read_bytes() == b"a = 1\nnot UTF-8: \xff\n"


def test_a_file_that_is_gone_or_a_link_in_the_working_tree_is_fixed_in_the_index_alone(repo: Repo) -> None:
    repo.stage({"src/f0.py": "a=1\n", "src/f1.py": "b=1\n"})
    (repo.path / "src/f0.py").unlink()
    (repo.path / "src/f1.py").unlink()
    (repo.path / "src/f1.py").symlink_to("f2.py")
    answer = repo.cli("fix")
    assert answer.code == 0, answer.err
    assert not (repo.path / "src/f0.py").exists()
    assert (repo.path / "src/f1.py").is_symlink()
    assert staged(repo)["src/f0.py"] == b"a = 1\n"
    assert staged(repo)["src/f1.py"] == b"b = 1\n"
    for name in ("src/f0.py", "src/f1.py"):
        assert f"{name}: " in answer.err


def test_line_ends_of_the_working_tree_stay(repo: Repo) -> None:
    repo.commit({".gitattributes": "*.py text eol=crlf\n"})
    repo.write("src/f0.py", "a=1\r\nb\r\nc\r\nd\r\n")
    repo.write("src/f1.py", "a=1\r\nb\r\nc\r\nd\r\n")
    repo.git("add", "src/f0.py", "src/f1.py")
    repo.write("src/f1.py", "a=1\r\nb\r\nc\r\nmine\r\n")
    assert repo.cli("fix").code == 0
    assert (repo.path / "src/f0.py").read_bytes() == b"a = 1\r\nb\r\nc\r\nd\r\n"
    assert (repo.path / "src/f1.py").read_bytes() == b"a = 1\r\nb\r\nc\r\nmine\r\n"
    assert staged(repo)["src/f1.py"] == b"a = 1\nb\nc\nd\n"


def test_a_mode_that_is_not_staged_stays(repo: Repo) -> None:
    repo.stage({"src/f0.py": "a=1\n"})
    (repo.path / "src/f0.py").chmod(0o755)
    assert repo.cli("fix").code == 0
    assert lines_of(repo, "src/f0.py") == ["a = 1"]
    assert os.access(repo.path / "src/f0.py", os.X_OK)
    assert repo.ask("ls-files", "-s", "src/f0.py").startswith("100644")


def test_a_mode_that_a_tool_sets_is_not_taken(repo: Repo) -> None:
    command = '["sh", "-c", "echo b=1 >$1; chmod +x $1", "sh", "{files}"]'
    policy(repo, f'[commands.x]\nkind = "format"\ncommand = {command}\nfiles = ["*.py"]\n')
    repo.stage({"src/f0.py": "a=1\n"})
    assert repo.cli("fix").code == 0
    assert staged(repo)["src/f0.py"] == b"b=1\n"
    assert repo.ask("ls-files", "-s", "src/f0.py").startswith("100644")
    assert not os.access(repo.path / "src/f0.py", os.X_OK)


def policy(repo: Repo, text: str) -> None:
    """Commit another policy."""
    repo.commit({"patchgate.toml": text}, "Change the policy")


def test_a_fix_command_runs_before_the_formatters_and_a_name_chooses(repo: Repo) -> None:
    policy(
        repo,
        POLICY
        + """\
[commands.lint]
kind = "lint"
command = ["false"]
fix = ["sh", "-c", 'for f; do sed "s/x/y=/" $f >n && cat n >$f; done', "sh", "{files}"]
files = ["*.py"]
""",
    )
    repo.stage({"src/f0.py": "x1\n"})
    assert Fixer(repo).fix("format").paths == ()
    result = Fixer(repo).fix()
    assert result.by == ("lint", "format")
    assert lines_of(repo, "src/f0.py") == ["y = 1"]


def test_what_a_command_does_beyond_its_files_is_not_taken(repo: Repo) -> None:
    text = """\
[commands.wild]
kind = "format"
command = ["sh", "-c", "rm src/f0.py; echo z >src/f1.py; echo z >src/f2.py; ln -sf f2.py src/f3.py; exit 3"]
files = ["src/f0.py", "src/f1.py", "src/f3.py"]
scope = "tree"
"""
    policy(repo, text)
    repo.stage(dict.fromkeys(("src/f0.py", "src/f1.py", "src/f2.py", "src/f3.py"), "a=1\n"))
    answer = repo.cli("fix")
    assert answer.code == 0, answer.err
    is_staged = staged(repo)
    assert is_staged["src/f1.py"] == b"z\n"
    assert {is_staged[name] for name in ("src/f0.py", "src/f2.py", "src/f3.py")} == {b"a=1\n"}
    for name in ("src/f0.py", "src/f2.py", "src/f3.py", "exit code 3"):
        assert name in answer.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ('["no-such-program", "{files}"]', "no-such-program"),
        ('["sh", "-c", "sleep 60", "{files}"]', "longer than"),
        ('["sh", "-c", "echo z >src/f0.py; kill -9 $$", "{files}"]', "signal 9"),
        ('["sh", "-c", "rm -r \\"$PWD\\"", "{files}"]', "scratch tree"),
    ],
)
def test_a_command_that_does_not_end_by_itself_changes_nothing(repo: Repo, command: str, said: str) -> None:
    policy(repo, f'[commands.bad]\nkind = "format"\ncommand = {command}\ntimeout = 0.2\nfiles = ["*.py"]\n')
    repo.stage({"src/f0.py": "a=1\n"})
    before = state(repo)
    answer = repo.cli("fix")
    assert answer.code == 3, answer
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert state(repo) == before


def test_a_fix_that_the_gates_refuse_changes_nothing(repo: Repo) -> None:
    policy(
        repo,
        """\
[content]
deny = ["forbidden"]
[commands.bad]
kind = "format"
command = ["sh", "-c", "echo forbidden >src/f0.py", "{files}"]
files = ["*.py"]
""",
    )
    repo.stage({"src/f0.py": "a=1\n"})
    before = state(repo)
    answer = repo.cli("fix")
    assert answer.code == 1
    assert "deny-content" in answer.out
    assert state(repo) == before


def test_work_that_is_saved_or_staged_meanwhile_stays(repo: Repo) -> None:
    there = repo.path
    saves = f"echo b >src/f0.py; echo saved >>{there}/src/f0.py; echo saved >{there}/src/f1.py"
    command = '[commands.slow]\nkind = "format"\nfiles = ["*.py"]\ncommand = ["sh", "-c", "{}"]\n'
    policy(repo, command.format(f"{saves}; git -C {there} add src/f1.py"))
    repo.stage({"src/f0.py": "a=1\nx\n"})
    Fixer(repo).fix()
    assert lines_of(repo, "src/f0.py") == ["a=1", "x", "saved"]
    assert lines_of(repo, "src/f1.py") == ["saved"]
    assert staged(repo)["src/f0.py"] == b"b\n"
    assert staged(repo)["src/f1.py"] == b"saved\n"
    repo.commit({}, "Keep it")
    policy(repo, command.format(f"{saves}; git -C {there} add src/f0.py"))
    repo.stage({"src/f0.py": "a=1\nx\n"})
    with pytest.raises(UndecidedError, match="f0"):
        Fixer(repo).fix()
    assert staged(repo)["src/f0.py"] == b"a=1\nx\nsaved\n"


def test_the_refusal_of_a_formatter_names_the_fix_that_makes_it_pass(repo: Repo) -> None:
    repo.stage({"src/f0.py": "a=1\n"})
    refused = repo.cli("commands", "run")
    assert refused.code == 1
    assert "git patchgate fix format" in refused.out
    assert repo.cli("fix", "format").code == 0
    assert repo.cli("commands", "run").code == 0


def test_a_command_that_fixes_nothing_or_is_not_there_is_a_wrong_argument(repo: Repo) -> None:
    policy(repo, '[commands.lint]\nkind = "lint"\ncommand = ["true"]\n')
    for names in ((), ("lint",), ("no",)):
        assert repo.cli("fix", *names).code == 2


def test_a_provided_folder_is_there_and_what_writes_to_it_changes_nothing(repo: Repo) -> None:
    repo.write("node_modules/tool.sh", "for f; do echo b >$f; done\n")
    repo.write(".gitignore", "node_modules\n")
    command = (
        '[commands.x]\nkind = "format"\nfiles = ["*.py"]\nprovide = ["node_modules"]\n'
        'command = ["sh", {}"{{files}}"]\n'
    )
    policy(repo, command.format('"node_modules/tool.sh", '))
    repo.stage({"src/f0.py": "a\n"})
    assert repo.cli("fix").code == 0
    assert lines_of(repo, "src/f0.py") == ["b"]
    assert (repo.path / "node_modules/tool.sh").is_file()
    repo.commit({}, "Keep it")
    policy(repo, command.format('"-c", "echo c >src/f0.py; echo >node_modules/cache", '))
    repo.stage({"src/f0.py": "a\n"})
    answer = repo.cli("fix")
    assert answer.code == 3
    assert "node_modules/" in answer.err
    assert lines_of(repo, "src/f0.py") == ["a"]


def test_an_unresolved_conflict_and_a_first_commit_are_no_fault(tmp_path: Path) -> None:
    repo = make(tmp_path)
    repo.git("checkout", "-q", "-b", "side")
    repo.commit({"src/f0.py": "side=1\n"})
    repo.git("checkout", "-q", "main")
    repo.commit({"src/f0.py": "main=1\n"})
    repo.try_git("merge", "-q", "side")
    answer = repo.cli("fix")
    assert answer.code == 3
    assert "conflict" in answer.err
    repo.stage({"src/f0.py": "both=1\n"})
    answer = repo.cli("fix")
    assert answer.code == 0, answer.err
    assert lines_of(repo, "src/f0.py") == ["both = 1"]
