"""The commands of an ordinary commit: the fast path and the full check say the same, and remember the same.

Each state is tried by the hook with a stub for patchgate (0: recognised, 7: handed on), then by the full
check from the same memory, then by the hook with the memory of the full check.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from patchgate.check.command_changes import untrusted_commands
from patchgate.commands.remembered_answers import RememberedAnswers, digest
from patchgate.commands.trusted_commands import allow
from patchgate.git.repository import open_repository
from patchgate.git.scratch_record import FolderRecord, identity_of
from patchgate.hooks.fast.renewal import renew_all
from patchgate.storage.owner import Owner
from tests.command_world import tool
from tests.hooks.fast.arrangements import ACCEPTED, boring, receipt, removed, staged, then
from tests.hooks.fast.boring_world import HANDED_ON, RECOGNISED, World, Worlds

pytestmark = pytest.mark.turns(6)

SEEN = 'printf "%s\\n" "$0 $*" >>"$RUNS"'
NO_FINDINGS = '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": []}]}'
FINDING = """{"ruleId": "r", "message": {"text": "m"}, "locations": [{"physicalLocation":
 {"artifactLocation": {"uri": "a"}, "region": {"startLine": 1}}}]}""".replace("\n", "")
ONE_FINDING = NO_FINDINGS.replace("[]", f"[{FINDING}]")
Arrange = Callable[[World], None]


def sarif(text: str, more: str = "") -> str:
    return tool("x", f"{SEEN}; printf '%s' '{text}'", more=f'output = "sarif"\n{more}')


def runs_of(world: World) -> Path:
    """Name the file with a line for each start of a tool."""
    return world.repo.path.parent / "runs"


def allowed(world: World) -> None:
    """Allow all commands on this machine."""
    repository = open_repository(world.repo.env, str(world.repo.path))
    _, wanted = untrusted_commands(repository, ())
    allow(repository.common_dir, [text for text, _ in wanted.values()])


def untrusted(world: World) -> None:
    """Allow nothing."""


def commit_unhooked(world: World, files: Mapping[str, str] | None = None) -> None:
    """Commit past the hooks: the full check that they ask for what is not ordinary is a stub here."""
    world.repo.stage(files)
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "Change")


def at_origin(world: World) -> None:
    """Let the default branch of `origin` have the policy of HEAD."""
    world.repo.git("remote", "add", "origin", "/nowhere")
    world.repo.git("update-ref", "refs/remotes/origin/main", "HEAD")


def at_a_tag_with_the_name_of_origin(world: World) -> None:
    """Let a tag have the full name of the default branch of `origin`, which is missing: git follows it."""
    at_origin(world)
    world.repo.git("update-ref", "-d", "refs/remotes/origin/main")
    world.repo.git("update-ref", "refs/tags/refs/remotes/origin/main", "HEAD")


def at_a_tag_beside_a_folder_of_that_name(world: World) -> None:
    """Let `origin` have a branch `main/x`, so that its `main` is a folder."""
    at_a_tag_with_the_name_of_origin(world)
    world.repo.git("update-ref", "refs/remotes/origin/main/x", "HEAD")


def at_a_packed_tag_of_a_dangling_origin(world: World) -> None:
    """Let `origin/HEAD` name a branch that is gone."""
    world.repo.git("remote", "add", "origin", "/nowhere")
    world.repo.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/gone")
    world.repo.git("update-ref", "refs/tags/refs/remotes/origin/HEAD", "HEAD")
    world.repo.git("pack-refs", "--all")


def at_packed_origin(world: World) -> None:
    at_origin(world)
    world.repo.git("pack-refs", "--all")


def at_an_empty_origin(world: World) -> None:
    """Let the default branch of `origin` have no file, and another branch the policy of HEAD."""
    at_origin(world)
    world.repo.git("checkout", "-q", "--orphan", "empty")
    world.repo.git("rm", "-rfq", ".")
    commit_unhooked(world)
    world.repo.git("update-ref", "refs/remotes/origin/HEAD", "HEAD")
    world.repo.git("checkout", "-q", "main")


def at_another_origin(world: World) -> None:
    """Let the default branch of `origin` have another definition, under a policy that was compiled."""
    at_origin(world)
    text = (world.repo.path / "patchgate.toml").read_text()
    commit_unhooked(world, {"patchgate.toml": text + "timeout = 5\n"})
    receipt(ACCEPTED)(world)
    assert renew_all(open_repository(world.repo.env, str(world.repo.path))).has_policy


def remembering_another_version(world: World) -> None:
    """Let the full check know the answer for other bytes, then stage some."""
    staged(a="3\n", b="3\n")(world)
    runs = runs_of(world)
    assert world.repo.cli("hook", "pre-commit", RUNS=str(runs)).code == 0
    runs.unlink()
    staged(a="2\n", b="3\n")(world)


def with_attributes(world: World) -> None:
    commit_unhooked(world, {".gitattributes": "a text eol=crlf\n"})
    world.repo.git("update-ref", "refs/remotes/origin/main", "HEAD")


@dataclass(frozen=True)
class State:
    """A policy, what is staged under it, whether the fast path decides, and what it starts."""

    policy: str
    runs: tuple[str, ...] | None
    arrange: Arrange = boring
    trust: Arrange = allowed
    then_known: bool = True
    env: Mapping[str, str] = field(default_factory=dict)


CLEAN = tool("x", SEEN)
FORMAT = tool("x", f'{SEEN}; for each; do echo more >>"$each"; done', kind="format")
STATES = {
    # A command that accepts, and who lets it run.
    "allowed here": State(CLEAN, ("x ./a",)),
    "at origin": State(CLEAN, ("x ./a",), trust=at_origin),
    "allowed, and another definition at origin": State(
        CLEAN, ("x ./a",), trust=then(at_another_origin, allowed)
    ),
    "at origin, packed": State(CLEAN, ("x ./a",), trust=at_packed_origin),
    "untrusted": State(CLEAN, None, trust=untrusted),
    "a tag with the name of origin": State(CLEAN, None, trust=at_a_tag_with_the_name_of_origin),
    "a tag beside a folder of that name": State(CLEAN, None, trust=at_a_tag_beside_a_folder_of_that_name),
    "a packed tag, and origin dangles": State(CLEAN, None, trust=at_a_packed_tag_of_a_dangling_origin),
    "no file at origin": State(CLEAN, None, trust=at_an_empty_origin),
    "another definition at origin": State(CLEAN, None, trust=at_another_origin),
    "a script of the tree": State(
        '[commands.x]\nkind = "lint"\ncommand = ["sh", "run.sh"]\nneeds = ["run.sh"]\non = ["commit"]\n', ()
    ),
    "a script of the tree that is changed": State(
        '[commands.x]\nkind = "lint"\ncommand = ["sh", "run.sh"]\nneeds = ["run.sh"]\non = ["commit"]\n',
        None,
        then(untrusted, staged(**{"run.sh": "exit 0\n"})),
    ),
    # What an end means.
    "two that accept": State(CLEAN + tool("y", SEEN, "./b"), ("x ./a", "y ./b")),
    "it fails": State(tool("x", f"{SEEN}; exit 1"), None),
    "one of two fails": State(CLEAN + tool("y", "exit 1"), None),
    "it is missing": State(
        '[commands.x]\nkind = "lint"\ncommand = ["no-such-tool"]\non = ["commit"]\n', None
    ),
    "it dies": State(tool("x", "kill -9 $$"), None),
    "it floods": State(tool("x", "head -c 3000000 /dev/zero"), None, then_known=True),
    "it removes its tree": State(tool("x", 'rm -rf "$PWD"'), None),
    "it puts another tree in the place of its own": State(
        tool("x", 'cp -r "$PWD" "$PWD.new" && rm -rf "$PWD" && mv "$PWD.new" "$PWD"'), None
    ),
    "it leaves a process": State(tool("x", f"{SEEN}; setsid sleep 60 &"), ("x ./a",)),
    "it writes a cache": State(tool("x", f"{SEEN}; mkdir .cache && touch .cache/x"), ("x ./a",)),
    "a formatter changes nothing": State(tool("x", SEEN, kind="format"), ("x ./a",)),
    "a formatter changes a file": State(FORMAT, None),
    "a linter changes a file": State(FORMAT.replace('"format"', '"lint"'), None),
    "a formatter swaps a file for a link": State(
        tool("x", 'cp "$1" other && ln -sf other "$1"', kind="format"), None
    ),
    "a formatter changes a mode": State(tool("x", 'chmod +x "$@"', kind="format"), None),
    "no findings": State(sarif(NO_FINDINGS), ("x ./a",)),
    "a finding": State(sarif(ONE_FINDING), None),
    "a new finding": State(sarif(ONE_FINDING, "new_only = true\n"), None),
    "findings of old": State(sarif(ONE_FINDING, "new_only = true\n"), None, staged(a="1\n2\n")),
    "it needs a folder that is new": State(
        tool("x", SEEN, more='files = ["a"]\nneeds = ["new"]\n'),
        None,
        staged(**{"a": "2\n", "new/file": "1\n"}),
        then_known=False,
    ),
    "no findings, where only new ones count": State(sarif(NO_FINDINGS, "new_only = true\n"), ("x ./a",)),
    "no SARIF": State(sarif("{}"), None),
    "SARIF that says more": State(
        sarif(NO_FINDINGS.replace('"results"', '"invocations": [{"executionSuccessful": false}], "results"')),
        None,
    ),
    "nothing at all for SARIF": State(sarif(""), None),
    # Which files.
    "no file for it": State(tool("x", SEEN, more='files = ["*.py"]\n'), ()),
    "other patterns": State(
        tool("x", SEEN, more='files = ["src/**/*.py"]\nexclude = ["src/New/"]\n'),
        ("x ./src/deep/c.py",),
        staged(**{"src/deep/c.py": "x = 2\n", "src/New/d.py": "x = 2\n"}),
    ),
    "odd patterns": State(tool("x", SEEN, more='files = ["[ab]"]\n'), None, then_known=False),
    "a root": State(
        tool("x", f"{SEEN}; test -f deep/c.py", more='root = "src"\n'),
        ("x ./deep/c.py",),
        staged(**{"src/deep/c.py": "x = 2\n"}),
    ),
    "a deletion alone": State(CLEAN, (), removed("b")),
    "a deletion, and a command without files": State(tool("x", SEEN, "all"), ("x all",), removed("b")),
    "new files and a deletion": State(CLEAN, ("x ./c",), then(removed("b"), staged(c="1\n"))),
    "a rename, where only new findings count": State(
        sarif(NO_FINDINGS, "new_only = true\n"), None, then(removed("b"), staged(c="1\n")), then_known=False
    ),
    "it needs files": State(
        tool("x", f"{SEEN}; cat b src/deep/c.py", more='needs = ["b", "src/deep/c.py", "gone"]\n'), ("x ./a",)
    ),
    "it needs a changed file": State(
        tool("x", f"{SEEN}; grep -q 2 b", "all", more='files = ["a"]\nneeds = ["b"]\n'),
        ("x all",),
        staged(a="2\n", b="2\n"),
    ),
    "it needs a folder": State(tool("x", SEEN, more='needs = ["src"]\n'), None, then_known=False),
    "attributes": State(
        tool("x", f'{SEEN}; test "$(od -An -c a | tr -d " ")" = "2\\\\r\\\\n"'),
        ("x ./a",),
        then(with_attributes, staged(a="2\n")),
    ),
    # What is remembered.
    "each file by itself": State(
        tool("x", SEEN, more="per_file = true\n"), ("x ./a",), remembering_another_version
    ),
    "known for other bytes": State(CLEAN, ("x ./a ./b",), remembering_another_version),
    "never remembered": State(tool("x", SEEN, more="remember = false\n"), ("x ./a",), then_known=False),
    # What only the full check runs, but remembers for both.
    "a test": State(tool("x", SEEN, kind="test"), None),
    "the whole tree": State(tool("x", SEEN, more='scope = "tree"\n'), None),
    "a provided folder": State(tool("x", SEEN, more='provide = ["tools"]\n'), None),
    "several jobs": State(tool("x", SEEN, more="jobs = 2\n"), None),
    "a JUnit report": State(tool("x", SEEN, more='output = "junit"\n'), None),
    "a version that is not known": State(
        tool("x", SEEN, more='version = ">=1"\nversion_command = ["echo", "x 1.5"]\n'), None
    ),
    "a time for hooks": State(f"{CLEAN}[hooks]\nbudget_ms = 60000\n", None),
    "an environment": State(f'{CLEAN}[environment]\nrequired_tools = ["sh"]\n', None, then_known=False),
    "a variable": State(tool("x", f'{SEEN}; test "$SAID" = é', more='env = {SAID = "é"}\n'), ("x ./a",)),
    "variables of Python that change others": State(CLEAN, None, env={"PYTHONUTF8": "0"}, then_known=False),
    "some are left out": State(
        CLEAN, None, env={"PATCHGATE_SKIP_ONLY": "x: it is broken today"}, then_known=False
    ),
}


class Tried:
    """A repository in the state, with what tells what was started."""

    def __init__(self, world: World, state: State) -> None:
        self.world = world
        self._runs = runs_of(world)
        self._env = {"RUNS": str(self._runs), **state.env}
        (world.repo.path / "tools").mkdir()
        state.trust(world)
        state.arrange(world)
        self._before = self.memory()

    def memory(self) -> dict[str, bytes]:
        folder = self.world.state / "answers"
        return {each.name: each.read_bytes() for each in folder.iterdir()} if folder.exists() else {}

    def forget(self) -> None:
        """Go back to the memory of before."""
        folder = self.world.state / "answers"
        shutil.rmtree(folder, ignore_errors=True)
        if self._before:
            folder.mkdir()
        for name, content in self._before.items():
            (folder / name).write_bytes(content)

    def hook(self) -> tuple[int, list[str], bytes | None]:
        """Run the hook: its exit code, what it started, and the pending receipt."""
        return self._answer(self.world.hook(**self._env).returncode)

    def full(self) -> tuple[int, list[str], bytes | None]:
        """Run the full check: the same."""
        return self._answer(self.world.repo.cli("hook", "pre-commit", cwd=None, **self._env).code)

    def _answer(self, code: int) -> tuple[int, list[str], bytes | None]:
        started = sorted(self._runs.read_text().splitlines()) if self._runs.exists() else []
        self._runs.unlink(missing_ok=True)
        pending = self.world.pending()
        (self.world.git_dir / "patchgate-pending").unlink(missing_ok=True)
        return code, started, pending

    def litter(self) -> list[Path]:
        """List what is left of scratch trees."""
        cache = Path(self.world.repo.env["HOME"], ".cache", "patchgate", "touched")
        places = [self.world.state / "scratch", cache]
        return [each for place in places if place.exists() for each in place.iterdir()]


@pytest.mark.parametrize("name", STATES)
def test_both_paths_say_the_same_and_remember_the_same(worlds: Worlds, name: str) -> None:
    state = STATES[name]
    tried = Tried(worlds(state.policy), state)
    before = tried.world.snapshot() if state.runs is None else {}
    fast = tried.hook()
    remembered = tried.memory()
    assert tried.litter() == []
    if state.runs is None:
        assert (fast[0], fast[2]) == (HANDED_ON, None)
        assert tried.world.snapshot() == before
    else:
        assert fast[:2] == (RECOGNISED, sorted(state.runs))
    tried.forget()
    full = tried.full()
    if state.runs is not None:
        assert full == fast
        assert tried.memory() == remembered
    known = full[0] == 0 and state.then_known
    again = tried.hook()
    assert again[0] == (RECOGNISED if known or state.runs is not None else HANDED_ON)
    if known:
        assert again == (RECOGNISED, [], full[2])


def test_a_tool_that_takes_long_is_ended_and_left_to_the_full_check_for_the_day(worlds: Worlds) -> None:
    tried = Tried(worlds(policy := tool("x", f"{SEEN}; exec sleep 60")), State(policy, None))
    assert tried.hook() == (HANDED_ON, ["x ./a"], None)
    assert len(tried.memory()) == 1
    assert tried.litter() == []
    assert tried.hook() == (HANDED_ON, [], None)


def test_what_was_slow_on_another_day_is_tried_again(worlds: Worlds) -> None:
    tried = Tried(worlds(CLEAN), State(CLEAN, None))
    assert tried.hook()[0] == RECOGNISED
    (context,) = tried.memory()
    today = int(time.time()) // 86_400
    for day, expected in ((today, HANDED_ON), (today - 2, RECOGNISED)):
        tried.forget()
        memory = RememberedAnswers(tried.world.repo.common_dir)
        memory.keep(digest(["slow", context]), [str(day)])
        assert tried.hook()[0] == expected


def test_what_a_killed_process_left_is_removed_by_the_full_check_first(
    worlds: Worlds, tmp_path: Path
) -> None:
    tried = Tried(worlds(CLEAN), State(CLEAN, None))
    records = tried.world.state / "scratch"
    records.mkdir()
    owner = Owner(2**22 + 1, "no-boot", "1")
    cache = Path(tried.world.repo.env["HOME"], ".cache", "patchgate", "touched")
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / ("1" * 16)
    folder.mkdir()
    (folder / "left").touch()
    record = FolderRecord(str(folder), owner, identity_of(str(folder)))
    (records / f"place-{folder.name}.json").write_bytes(record.to_bytes())
    assert tried.hook() == (HANDED_ON, [], None)
    assert tried.full()[0] == 0
    assert tried.litter() == []
    tried.forget()
    assert tried.hook()[0] == RECOGNISED


def test_a_folder_of_a_worktree_is_found_like_that_of_the_repository(worlds: Worlds, tmp_path: Path) -> None:
    policy = tool("x", SEEN, more='provide = ["tools"]\n')
    world = worlds(policy)
    world.repo.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "beside"))
    tried = Tried(world.beside(tmp_path / "beside"), State(policy, None))
    assert tried.full()[:2] == (0, ["x ./a"])
    again = tried.hook()
    assert again[:2] == (RECOGNISED, [])
    (tried.world.repo.path / "tools" / "package-lock.json").touch()
    (tried.world.repo.path / "package-lock.json").touch()
    (tried.world.repo.path / "package-lock.json").write_text("{}\n")
    assert tried.hook() == (HANDED_ON, [], None)


def test_the_policy_at_origin_is_compiled_where_its_commands_are_compared(worlds: Worlds) -> None:
    world = worlds(CLEAN)
    at_origin(world)
    commit_unhooked(world, {"patchgate.toml": f'{CLEAN}[message]\nlevel = "off"\n'})
    world.compiled.unlink()
    tried = Tried(world, State(CLEAN, None, trust=untrusted))
    assert tried.hook()[0] == HANDED_ON
    assert tried.full()[:2] == (0, ["x ./a"])
    tried.forget()
    assert tried.hook()[:2] == (RECOGNISED, ["x ./a"])
