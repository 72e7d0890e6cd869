"""The boring change is recognised by the installed shim, and everything else is handed on untouched."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from patchgate import __version__
from tests.hooks.fast.arrangements import including, then
from tests.hooks.fast.boring_world import ACCEPTED, HANDED_ON, RECOGNISED, World, Worlds


def is_recognised(world: World, **env: str) -> bool:
    """Run the shim on what is staged; whatever it says, it says nothing in words."""
    done = world.hook(**env)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert done.returncode in {RECOGNISED, HANDED_ON}
    return done.returncode == RECOGNISED


def is_same_as_judged(world: World) -> bool:
    """Tell whether what was left is what the full tier leaves, which accepts and says nothing."""
    left = world.pending(), world.quiet()
    assert left[0] is not None
    done = world.judge()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return (world.pending(), world.quiet()) == left


def remove(world: World) -> None:
    world.repo.git("rm", "-q", "a", "run.sh")


def rename(world: World) -> None:
    world.repo.git("mv", "a", "moved")


def change_executable(world: World) -> None:
    world.repo.write("run.sh", "false\n", executable=True)
    world.repo.git("add", "run.sh")


def folder_to_file(world: World) -> None:
    world.repo.git("rm", "-q", "-r", "src/deep")
    world.repo.stage({"src/deep": "x\n"})


def intend_to_add(world: World) -> None:
    world.repo.write("uv.lock", "x\n")
    world.repo.git("add", "-N", "uv.lock")


def hide_from_the_working_tree(world: World) -> None:
    world.repo.stage({"a": "2\n", "b": "2\n"})
    world.repo.git("update-index", "--assume-unchanged", "a")
    world.repo.git("update-index", "--skip-worktree", "b")


def only_in_the_working_tree(world: World) -> None:
    world.repo.write("id.pem", "-----BEGIN RSA PRIVATE KEY-----\n")


def stage(files: Mapping[str, str | bytes]) -> Callable[[World], None]:
    return lambda world: world.repo.stage(files)


def sparse_index(world: World) -> None:
    world.repo.git("sparse-checkout", "set", "--cone", "--sparse-index", "src/deep")
    world.repo.write("src/deep/c.py", "x = 2\n")
    world.repo.git("add", "src/deep/c.py")


BORING: dict[str, Callable[[World], None]] = {
    "nothing": lambda world: None,
    "a config that includes another": then(stage({"new": "x\n"}), including("[a]\n\tb = c\n")),
    "added": stage({"new": "x\n", "src/deep/e.py": "x\n", "other/deep/f.py": "x\n"}),
    "added empty": stage({"new": ""}),
    "modified": stage({"a": "2\n", "src/deep/c.py": "x = 2\n"}),
    "modified without a last newline": stage({"a": "2"}),
    "deleted": remove,
    "renamed": rename,
    "a file where a folder was": folder_to_file,
    "an executable that stays one": change_executable,
    "names with spaces and brackets": stage(
        {"a b (1)/[id].tsx": "x\n", "{x}!#$&;'^.@%+=,_-": "x\n", "-rf": "x\n", "HEAD": "x\n"}
    ),
    "bytes that are no text": stage({"a": b"\xff\xfe\x80\n", "b": "ü\r\n"}),
    "an entry that is only intended": intend_to_add,
    "entries that git does not compare": hide_from_the_working_tree,
    "what is not staged": only_in_the_working_tree,
    "a sparse index": sparse_index,
}


@pytest.mark.parametrize("name", BORING)
def test_a_boring_change_is_recognised_and_leaves_what_the_full_tier_leaves(
    worlds: Worlds, name: str
) -> None:
    world = worlds()
    BORING[name](world)
    assert is_recognised(world)
    assert is_same_as_judged(world)


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash") if shutil.which(name)])
def test_both_shells_take_the_same_way(worlds: Worlds, shell: str) -> None:
    world = worlds()
    world.repo.stage({"a b": "2\n"})
    assert world.hook(shell).returncode == RECOGNISED
    world.repo.stage({"a b": "<<<<<<< HEAD\n"})
    assert world.hook(shell).returncode == HANDED_ON


def test_nothing_else_changes_in_the_repository(worlds: Worlds) -> None:
    world = worlds()
    world.repo.stage({"a": "2\n"})
    before = world.snapshot()
    assert is_recognised(world)
    after = world.snapshot()
    assert {*after} - {*before} == {".git/patchgate-pending"}
    assert {name: after[name] for name in before} == before
    assert after[".git/patchgate-pending"][0] & 0o777 == 0o600


def test_nothing_changes_at_all_where_it_is_handed_on(worlds: Worlds) -> None:
    world = worlds()
    world.repo.stage({"a": "2\n", "uv.lock": "x\n"})
    before = world.snapshot()
    assert not is_recognised(world)
    assert world.snapshot() == before


def test_a_commit_that_is_recognised_gets_its_receipt(worlds: Worlds) -> None:
    world = worlds()
    world.repo.stage({"a": "2\n"})
    world.repo.git("commit", "-q", "-m", "Say two")
    head, tree, parent = world.repo.ask("log", "-1", "--format=%H %T %P").split()
    receipts = (world.state / "receipts").read_text(encoding="ascii")
    assert receipts == f"{head} {tree} {parent}\n"


def test_one_commit_after_another_is_recognised(worlds: Worlds) -> None:
    world = worlds()
    for number in range(3):
        world.repo.stage({"a": f"again {number}\n"})
        assert is_recognised(world)
        world.repo.git("commit", "-q", "-m", "Count on")
    assert (world.state / "receipts").read_text(encoding="ascii").count("\n") == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("-a", "-m", "All"),
        ("-m", "One path", "b"),
        ("--include", "-m", "One path more", "b"),
        ("--amend", "-m", "Other words"),
        ("--allow-empty", "-m", "Nothing"),
        ("-q", "-C", "HEAD"),
    ],
    ids=" ".join,
)
def test_each_form_of_commit_is_recognised(worlds: Worlds, arguments: tuple[str, ...]) -> None:
    world = worlds()
    world.repo.stage({"a": "1.5\n"})
    world.repo.git("commit", "-q", "-m", "Second")
    world.repo.stage({"a": "2\n"})
    world.repo.write("b", "2\n")
    before = world.repo.head()
    # The stub refuses whatever is handed on.
    world.repo.git("commit", *arguments)
    assert world.repo.head() != before


def test_commit_all_is_handed_on_for_what_it_stages_by_itself(worlds: Worlds) -> None:
    world = worlds()
    world.repo.write("a", "<<<<<<< HEAD\n")
    assert is_recognised(world)
    for arguments in (("-a",), ("a",)):
        assert world.repo.try_git("commit", "-q", "-m", "Marker", *arguments).returncode != 0


def test_an_index_of_its_own_is_the_one_that_counts(worlds: Worlds) -> None:
    world = worlds()
    world.repo.stage({"a": "<<<<<<< HEAD\n"})
    shutil.copy(world.git_dir / "index", world.repo.path / "other index")
    world.repo.git("reset", "-q")
    assert is_recognised(world)
    assert not is_recognised(world, GIT_INDEX_FILE="other index")


@pytest.mark.parametrize("branch", ["main", "HEAD", "feature/x-y.z", "ü", "x-g1234567"])
def test_a_branch_of_any_name_is_recognised(worlds: Worlds, branch: str) -> None:
    world = worlds()
    world.repo.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    world.repo.git("update-ref", f"refs/heads/{branch}", world.repo.ask("rev-parse", "refs/heads/main"))
    world.repo.stage({"a": "2\n"})
    assert is_recognised(world)
    assert is_same_as_judged(world)


def test_a_packed_branch_is_recognised(worlds: Worlds) -> None:
    world = worlds()
    world.repo.git("pack-refs", "--all", "--prune")
    world.repo.stage({"a": "2\n"})
    assert is_recognised(world)


def test_a_linked_worktree_is_recognised_by_its_own_head_and_index(worlds: Worlds) -> None:
    world = worlds()
    place = world.repo.path.parent / "linked tree"
    world.repo.git("worktree", "add", "-q", "-b", "other", str(place))
    linked = world.beside(place)
    world.repo.stage({"a": "<<<<<<< HEAD\n"})
    linked.repo.stage({"a": "2\n"})
    assert is_recognised(linked)
    assert is_same_as_judged(linked)
    assert b" refs/heads/other\n" in (linked.pending() or b"")
    linked.repo.git("commit", "-q", "-m", "There")
    assert not is_recognised(world)


def test_a_sha256_repository_is_recognised(worlds: Worlds) -> None:
    world = worlds("", "--object-format=sha256")
    world.repo.stage({"a": "2\n", "src/deep/e.py": "x\n"})
    assert is_recognised(world)
    left = world.pending()
    assert world.judge().returncode == 0
    assert world.pending() == left


def test_the_first_commit_after_a_pull_is_recognised(worlds: Worlds, tmp_path: Path) -> None:
    world = worlds()
    elsewhere = world.repo.at(tmp_path / "elsewhere")
    world.repo.git("clone", "-q", str(world.repo.path), str(elsewhere.path))
    elsewhere.git("config", "core.hooksPath", "/dev/null")
    elsewhere.commit({"b": "2\n"}, "Elsewhere")
    world.repo.git("remote", "add", "origin", str(elsewhere.path))
    world.repo.git("pull", "-q", "--ff-only", "origin", "main")
    world.repo.git("fetch", "-q", "origin")
    (world.state / "receipts").unlink(missing_ok=True)
    world.repo.stage({"a": "2\n"})
    assert is_recognised(world)
    assert is_same_as_judged(world)


def test_the_first_commit_on_a_new_branch_from_the_default_branch_of_origin_is_recognised(
    worlds: Worlds, tmp_path: Path
) -> None:
    origin = worlds().repo
    origin.git("config", "core.hooksPath", "/dev/null")
    clone = origin.at(tmp_path / "clone")
    origin.git("clone", "-q", str(origin.path), str(clone.path))
    world = worlds.adopt(clone)
    origin.commit({"b": "2\n"}, "Elsewhere")
    clone.git("fetch", "-q")
    clone.git("checkout", "-q", "--no-track", "-b", "topic", "origin/main")
    assert not (world.state / "receipts").exists()
    clone.stage({"a": "2\n"})
    assert is_recognised(world)
    assert is_same_as_judged(world)


def answer_nobody(world: World) -> None:
    """Commit past all hooks."""
    world.repo.stage({"b": "2\n"})
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Past the hooks")


def test_a_receipt_and_what_was_told_answer_for_a_commit(worlds: Worlds) -> None:
    world = worlds()
    answer_nobody(world)
    world.repo.stage({"a": "2\n"})
    assert not is_recognised(world)
    head, tree, parent = world.repo.ask("log", "-1", "--format=%H %T %P").split()
    (world.state / "receipts").write_text(f"{head} {tree} {parent}\n", encoding="ascii")
    assert is_recognised(world)
    (world.state / "receipts").unlink()
    (world.state / "told").write_text(f"{head} refs/heads/main\n", encoding="ascii")
    assert is_recognised(world)


def unborn(world: World) -> None:
    world.repo.git("symbolic-ref", "HEAD", "refs/heads/new")


def orphan(world: World) -> None:
    world.repo.git("checkout", "-q", "--orphan", "alone")


def detach(world: World) -> None:
    world.repo.git("checkout", "-q", "--detach")


def conflict(world: World) -> None:
    oid = world.repo.ask("rev-parse", "HEAD:a")
    lines = f"0 {'0' * 40}\ta\n100644 {oid} 1\ta\n100644 {oid} 2\ta\n"
    world.repo.git("update-index", "--index-info", stdin=lines.encode())


def link(world: World) -> None:
    world.repo.link("link", "a")
    world.repo.stage()


def gitlink(world: World) -> None:
    world.repo.gitlink("module")


def become_executable(world: World) -> None:
    world.repo.git("update-index", "--chmod=+x", "a")


def become_link(world: World) -> None:
    (world.repo.path / "a").unlink()
    world.repo.link("a", "b")
    world.repo.stage()


def add_executable(world: World) -> None:
    world.repo.write("new", executable=True)
    world.repo.stage()


def call_binary(world: World) -> None:
    (world.git_dir / "info").mkdir(exist_ok=True)
    (world.git_dir / "info/attributes").write_text("*.x -diff\n", encoding="utf-8")
    world.repo.stage({"new.x": "x\n"})


def lose_a_blob(world: World) -> None:
    world.repo.stage({"a": "gone\n"})
    oid = world.repo.ask("rev-parse", ":a")
    (world.git_dir / "objects" / oid[:2] / oid[2:]).unlink()


def damage_the_index(world: World) -> None:
    (world.git_dir / "index").write_bytes(b"DIRC")


def take(name: str) -> Callable[[World], None]:
    return lambda world: (world.state / name).unlink()


def write(name: str, raw: bytes) -> Callable[[World], None]:
    def arrange(world: World) -> None:
        (world.state / name).write_bytes(raw)

    return arrange


def damage_the_policy(world: World) -> None:
    raw = world.compiled.read_bytes()
    world.compiled.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))


def lose_the_policy(world: World) -> None:
    world.compiled.unlink()


def active(line: str) -> Callable[[World], None]:
    return write("fast/active", line.encode())


def replace_head(world: World) -> None:
    """Let git believe that HEAD already has what is staged."""
    before = world.repo.head()
    world.repo.stage({"a": "<<<<<<< HEAD\n"})
    after = world.repo.ask("commit-tree", "-m", "x", world.repo.ask("write-tree"))
    world.repo.git("replace", before, after)


def replace_a_large_file(world: World) -> None:
    """Let git believe that a large file is a small one."""
    world.repo.stage({"a": "x" * 1_100_000 + "\n"})
    world.repo.git("replace", world.repo.ask("rev-parse", ":a"), world.repo.ask("rev-parse", ":b"))


HANDED: dict[str, Callable[[World], None]] = {
    "no commit yet": unborn,
    "an orphan branch": orphan,
    "a detached HEAD": detach,
    "an unmerged index": conflict,
    "a symlink": link,
    "a gitlink": gitlink,
    "a mode that changes": become_executable,
    "a type that changes": become_link,
    "an added executable": add_executable,
    "a binary file": stage({"new": b"\0"}),
    "a file that attributes call binary": call_binary,
    "a private key": stage({"a": "-----BEGIN RSA PRIVATE KEY-----\n"}),
    "a conflict marker": stage({"a": ">>>>>>> topic\n"}),
    "a lock file": stage({"uv.lock": "x\n"}),
    "the policy": stage({"patchgate.toml": "[policy]\n"}),
    "the project's own config": stage({"pyproject.toml": "x = 1\n"}),
    "attributes": stage({"src/.gitattributes": "*.x -diff\n"}),
    "a name beyond ASCII": stage({"ü": "x\n"}),
    "a name with a newline": stage({"a\nb": "x\n"}),
    "a name with a backslash": stage({"a\\b": "x\n"}),
    "a new name that differs by case": stage({"A": "x\n"}),
    "too many lines": stage({"a": "x\n" * 2001}),
    "too many files": stage({f"many/{number}": "x\n" for number in range(51)}),
    "a file that is too large": stage({"a": "x" * 1_100_000 + "\n"}),
    "a large file that is replaced": replace_a_large_file,
    "a replaced HEAD": replace_head,
    "a blob that is missing": lose_a_blob,
    "a damaged index": damage_the_index,
    "HEAD was committed past the hooks": answer_nobody,
    "no line that says what is active": take("fast/active"),
    "shims of another meaning": active(f"2 {__version__} {sys.executable}\n"),
    "a version that is a path": active(f"1 ../{__version__} {sys.executable}\n"),
    "a version that is not here": active(f"1 0.0.0 {sys.executable}\n"),
    "an interpreter that is gone": active(f"1 {__version__} /nowhere/python\n"),
    "an interpreter that is no whole path": active(f"1 {__version__} python3\n"),
    "an interpreter that ends well at once": active(f"1 {__version__} /bin/true\n"),
    "an interpreter that talks": active(f"1 {__version__} /bin/echo\n"),
    "no copy": take(f"fast/{__version__}/recognise.pyc"),
    "a damaged copy": write(f"fast/{__version__}/recognise.pyc", b"\0" * 100),
    "no compiled policy": lose_the_policy,
    "a damaged compiled policy": damage_the_policy,
}


@pytest.mark.parametrize("name", HANDED)
def test_what_is_not_boring_is_handed_on_and_leaves_nothing(worlds: Worlds, name: str) -> None:
    world = worlds()
    HANDED[name](world)
    before = world.snapshot()
    assert not is_recognised(world)
    assert world.snapshot() == before


COMPONENT = """\
[components.deep]
contract = "contracts/deep.json"
tests = ["tests/deep/**"]
implementation = ["src/deep/**"]
"""


def test_where_no_component_is_near_a_change_is_recognised(worlds: Worlds) -> None:
    world = worlds(COMPONENT)
    world.repo.stage({"a": "2\n", "src/New/d.py": "x = 2\n", "src/deeper.py": "x = 1\n"})
    assert is_recognised(world)
    assert is_same_as_judged(world)


@pytest.mark.parametrize(
    "path",
    [
        "src/deep/c.py",
        "src/deep/new.py",
        "contracts/deep.json",
        "tests/deep/x/test_y.py",
        ".patchgate/baselines/deep.json",
    ],
)
def test_what_is_near_a_component_is_handed_on(worlds: Worlds, path: str) -> None:
    world = worlds(COMPONENT)
    world.repo.stage({path: "x = 2\n"})
    assert not is_recognised(world)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATCHGATE_SKIP", "why"),
        ("PATCHGATE_SKIP", ""),
        ("PATCHGATE_WITNESS", "/dev/null"),
        ("PRE_COMMIT", "1"),
        ("GIT_COMMON_DIR", ".git"),
    ],
)
def test_who_asks_for_the_full_tier_gets_it(worlds: Worlds, name: str, value: str) -> None:
    world = worlds()
    assert is_recognised(world)
    assert not is_recognised(world, **{name: value})


def test_nothing_of_the_callers_git_changes_what_is_recognised(worlds: Worlds) -> None:
    world = worlds("[policy.commit]\nmax_added_lines = 2\n")
    odd = {
        "GIT_DIFF_OPTS": "-u9",
        "GIT_EXTERNAL_DIFF": "/bin/true",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.attributesFile",
        "GIT_CONFIG_VALUE_0": "/dev/stdin",
        "GIT_NAMESPACE": "x",
        "GIT_WORK_TREE": "/",
        "GIT_TRACE": "1",
        "GIT_ATTR_SOURCE": "HEAD",
        "IFS": "/",
        "LC_ALL": "tr_TR.UTF-8",
        "PYTHONPATH": "/nowhere",
        "PYTHONVERBOSE": "1",
        "PYTHONINSPECT": "1",
    }
    world.repo.stage({"new": "1\n2\n"})
    assert is_recognised(world, **odd)
    left = world.pending()
    assert world.judge().returncode == 0
    assert world.pending() == left
    world.repo.stage({"new": "1\n2\n3\n"})
    assert not is_recognised(world, **odd)


@pytest.mark.parametrize("value", ["all", "true", "always", "9", "histogram"])
def test_no_config_changes_what_is_recognised(worlds: Worlds, value: str) -> None:
    world = worlds("[policy.commit]\nmax_added_lines = 2\n")
    keys = {
        "all": ("diff.ignoreSubmodules", "diff.wsErrorHighlight"),
        "true": (
            "diff.noprefix",
            "diff.relative",
            "diff.suppressBlankEmpty",
            "diff.renames",
            "core.ignoreCase",
        ),
        "always": ("color.ui", "color.diff"),
        "9": ("diff.context", "diff.interHunkContext", "core.abbrev", "core.bigFileThreshold"),
        "histogram": ("diff.algorithm",),
    }
    for key in keys[value]:
        world.repo.git("config", key, value)
    world.repo.git("mv", "b", "moved")
    world.repo.stage({"new": "2\n"})
    assert is_recognised(world)
    assert is_same_as_judged(world)
    world.repo.stage({"new": "1\n2\n3\n"})
    assert not is_recognised(world)


def test_a_driver_of_the_users_is_never_run(worlds: Worlds) -> None:
    world = worlds()
    (world.git_dir / "info").mkdir(exist_ok=True)
    (world.git_dir / "info/attributes").write_text("* diff=mine\n", encoding="utf-8")
    for key in ("textconv", "command"):
        world.repo.git("config", f"diff.mine.{key}", "touch ran; true")
    world.repo.stage({"a": "2\n"})
    assert is_recognised(world)
    assert not (world.repo.path / "ran").exists()
    world.repo.stage({"a": "<<<<<<< HEAD\n"})
    assert not is_recognised(world)


def test_where_messages_can_be_refused_no_pending_receipt_is_left(worlds: Worlds) -> None:
    world = worlds('[message]\nlevel = "error"\n')
    world.repo.stage({"a": "2\n"})
    (world.git_dir / "patchgate-pending").write_bytes(b"of an earlier commit\n")
    assert is_recognised(world)
    assert (world.pending(), world.quiet()) == (None, None)
    assert world.judge().returncode == 0
    assert (world.pending(), world.quiet()) == (None, None)


def test_where_messages_are_not_judged_commit_msg_is_told(worlds: Worlds) -> None:
    world = worlds('[message]\nlevel = "off"\n')
    world.repo.stage({"a": "2\n"})
    assert is_recognised(world)
    assert world.quiet() is not None
    assert is_same_as_judged(world)


def test_where_messages_are_judged_what_an_earlier_commit_told_is_taken_back(worlds: Worlds) -> None:
    world = worlds()
    (world.git_dir / "patchgate-quiet").write_text(f"{__version__}\n", encoding="ascii")
    assert is_recognised(world)
    assert world.quiet() is None


def test_a_hook_from_before_runs_first_and_can_refuse(worlds: Worlds) -> None:
    world = worlds()
    previous = world.git_dir / "hooks/pre-commit.patchgate-prev"
    previous.write_text("#!/bin/sh\nprintf '<<<<<<< x\\n' >a && git add a\n", encoding="utf-8")
    previous.chmod(0o755)
    assert not is_recognised(world)
    previous.write_text("#!/bin/sh\nexit 9\n", encoding="utf-8")
    assert world.hook().returncode == 9
    assert world.pending() is None


def test_the_copy_loads_no_file_that_python_alone_does_not_load(worlds: Worlds, tmp_path: Path) -> None:
    world = worlds()
    world.repo.stage({"a": "2\n", "src/deep/e.py": "x\n"})
    heard = world.listen()
    told = tmp_path / "modules"
    # The program ends by posix._exit, so what it has loaded is told there.
    spy = (
        "import marshal, posix, sys\n"
        f"code = marshal.loads(open({str(world.copy)!r}, 'rb').read()[16:])\n"
        "before = set(sys.modules)\n"
        "leave = posix._exit\n"
        "def tell(number):\n"
        "    names = sorted(set(sys.modules) - before)\n"
        f"    open({str(told)!r}, 'w').write(' '.join(names))\n"
        "    leave(number)\n"
        "posix._exit = tell\n"
        "exec(code, {'__name__': '__main__'})\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", spy, *heard.words],
        input=heard.said,
        cwd=world.repo.path,
        env=world.repo.env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == ACCEPTED, done.stderr
    assert told.read_text(encoding="ascii") in {"", "_sha1"}
    bare = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    )
    # What the program imports is part of the interpreter.
    assert {"posix", "marshal", "_imp"} <= {*bare.stdout.split(), *sys.builtin_module_names}
