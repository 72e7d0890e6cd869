"""pre-merge-commit recognises a clean merge in which no path was changed on both sides; nothing else.

The hook calls a stub, so it ends with 0 only if the merge is recognised. `random_merges` compares the fast
path with the full check.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.amount import IS_LONG
from tests.hooks.fast.arrangements import then, with_an_intent
from tests.hooks.fast.boring_world import HANDED_ON, RECOGNISED, World, Worlds
from tests.hooks.fast.random_merges import make_merges

pytestmark = pytest.mark.turns(3)

OFF = ("-c", "core.hooksPath=/dev/null")
SEED = 5
POLICY = "[policy.commit]\nmax_files = 9\n"
COMPONENT = "[components.x]\ncontract = 'c'\ntests = ['t']\nimplementation = ['i']\n"
COMMAND = '[commands.x]\nkind = "lint"\ncommand = ["true"]\non = ["commit"]\n'


def commit(world: World, files: dict[str, str | bytes], *options: str) -> None:
    """Commit past the hooks, with a receipt; `options` go to `git commit`."""
    world.repo.stage(files)
    world.repo.git(*OFF, "commit", "-q", "-m", "Change it", *options)
    line = world.repo.ask("log", "-1", "--format=%H %T %P")
    with (world.state / "receipts").open("a", encoding="ascii") as file:
        file.write(line + "\n")


def forked(worlds: Worlds, policy: str = "") -> World:
    """Change another file on each side; main is checked out, and the index is what git merges."""
    world = worlds(policy)
    worlds.stub(world, "pre-merge-commit")
    world.repo.git(*OFF, "switch", "-q", "-c", "side")
    commit(world, {"b": "side\n", "src/new.py": "y = 1\n"})
    world.repo.git(*OFF, "switch", "-q", "main")
    commit(world, {"a": "main\n"})
    return world


def merged(world: World) -> World:
    """Put what git merges into the index, as it is before pre-merge-commit runs."""
    # With a conflict it has another exit code.
    said = world.repo.try_git("merge-tree", "--write-tree", "main", "side").stdout
    world.repo.git("read-tree", said.decode("ascii").splitlines()[0])
    return world


def join(world: World, *shell: str, **env: str) -> int:
    return world.join(world.repo.ask("rev-parse", "side"), *shell, **env).returncode


@pytest.mark.parametrize("shell", [name for name in ("dash", "bash") if shutil.which(name)])
def test_a_clean_merge_is_recognised_by_both_shells(worlds: Worlds, shell: str) -> None:
    world = merged(forked(worlds))
    assert join(world, shell) == RECOGNISED
    tree, (head, side) = world.repo.ask("write-tree"), world.repo.ask("rev-parse", "main", "side").split()
    left = (world.git_dir / "patchgate-merging").read_text(encoding="ascii").splitlines()
    assert left[0].split()[2] == tree
    assert left[1].split() == [head, "refs/heads/main", side]


def test_a_clean_merge_lands_without_the_full_check(worlds: Worlds) -> None:
    world = forked(worlds)
    world.repo.git("merge", "-q", "--no-edit", "side")
    line = world.repo.ask("log", "-1", "--format=%H %T %P").rsplit(" ", 1)[0]
    assert (world.state / "receipts").read_text(encoding="ascii").splitlines()[-1] == f"{line} merge"


def test_a_linked_worktree_and_other_ids_are_recognised(worlds: Worlds) -> None:
    world = worlds("", "--object-format=sha256")
    worlds.stub(world, "pre-merge-commit")
    place = world.repo.path.parent / "linked"
    world.repo.git(*OFF, "worktree", "add", "-q", "-b", "side", str(place))
    linked = world.beside(place)
    commit(linked, {"b": "side\n"})
    commit(world, {"a": "main\n"})
    linked.repo.git("merge", "-q", "--no-edit", "main")


def past_the_hooks(world: World) -> None:
    world.repo.git(*OFF, "switch", "-q", "side")
    world.repo.stage({"b": "unseen\n"})
    world.repo.git(*OFF, "commit", "-q", "-m", "Past")
    world.repo.git(*OFF, "switch", "-q", "main")


def head_past_the_hooks(world: World) -> None:
    world.repo.stage({"a": "unseen\n"})
    world.repo.git(*OFF, "commit", "-q", "-m", "Past")


def on_side(files: dict[str, str | bytes]) -> Callable[[World], None]:
    def arrange(world: World) -> None:
        world.repo.git(*OFF, "switch", "-q", "side")
        commit(world, files)
        world.repo.git(*OFF, "switch", "-q", "main")

    return arrange


def on_main(files: dict[str, str | bytes]) -> Callable[[World], None]:
    return lambda world: commit(world, files)


def crossed(world: World) -> None:
    """Let each side merge the first commit of the other, so that there are two merge bases."""
    first = world.repo.ask("rev-parse", "main", "side").split()
    for branch, other in (("main", first[1]), ("side", first[0])):
        world.repo.git(*OFF, "switch", "-q", branch)
        world.repo.git(*OFF, "merge", "-q", "--no-edit", "-m", "Merge", other)
        commit(world, {f"{branch}-after": "1\n"})
    world.repo.git(*OFF, "switch", "-q", "main")


def gone_for_a_while(world: World) -> None:
    """Remove the policy on the side branch, change something, and add the same policy again."""
    policy = world.repo.ask("show", "main:patchgate.toml") + "\n"
    world.repo.git(*OFF, "switch", "-q", "side")
    world.repo.git("rm", "-q", "patchgate.toml")
    commit(world, {})
    commit(world, {"b": "under none\n"})
    commit(world, {"patchgate.toml": policy})
    world.repo.git(*OFF, "switch", "-q", "main")


def link(world: World) -> None:
    world.repo.git(*OFF, "switch", "-q", "side")
    world.repo.link("link", "a")
    commit(world, {})
    world.repo.git(*OFF, "switch", "-q", "main")


def file_in_git_dir(name: str) -> Callable[[World], object]:
    return lambda world: (world.git_dir / name).write_text("x\n", encoding="ascii")


HANDED: dict[str, tuple[str, Callable[[World], object]]] = {
    "a commit without a receipt": ("", past_the_hooks),
    "a head without a receipt": ("", head_past_the_hooks),
    "both sides changed a file": ("", on_main({"b": "side\n"})),
    "several merge bases": ("", crossed),
    "another policy on one side": ("", on_side({"patchgate.toml": POLICY})),
    "another policy on the branch": ("", on_main({"patchgate.toml": POLICY})),
    "commits from before the policy came back": (POLICY, gone_for_a_while),
    "a control file": ("", on_side({".gitattributes": "* merge=union\n"})),
    "a symlink": ("", link),
    "names that collide": ("", then(on_side({"readme": "1\n"}), on_main({"README": "1\n"}))),
    "a denied path": ('[policy]\ndeny_prefixes = ["src/new.py"]\n', lambda world: None),
    "components": (COMPONENT, lambda world: None),
    "a command at commits": (COMMAND, lambda world: None),
    "messages that can be refused": ('[message]\nlevel = "error"\n', lambda world: None),
    "an intent of another worktree": ("", with_an_intent),
    "an intent": ("", file_in_git_dir("patchgate-intents")),
    "a report that a hook has shown": ("", file_in_git_dir("patchgate-shown")),
    "a merge in progress": ("", file_in_git_dir("MERGE_HEAD")),
    "a shallow clone": ("", lambda world: (world.git_dir / "shallow").touch()),
}


@pytest.mark.parametrize("name", HANDED)
def test_what_is_not_such_a_merge_is_handed_on_and_leaves_nothing(worlds: Worlds, name: str) -> None:
    policy, arrange = HANDED[name]
    world = forked(worlds, policy)
    arrange(world)
    merged(world)
    assert join(world) == HANDED_ON
    assert not (world.git_dir / "patchgate-merging").exists()


@pytest.mark.parametrize("branch", ["main", "side"])
def test_a_file_added_to_a_folder_that_the_other_side_moved_is_handed_on(worlds: Worlds, branch: str) -> None:
    world = worlds()
    worlds.stub(world, "pre-merge-commit")
    world.repo.git(*OFF, "branch", "side")
    other = {"main": "side", "side": "main"}[branch]
    world.repo.git(*OFF, "switch", "-q", branch)
    world.repo.git("mv", "src", "moved")
    commit(world, {})
    world.repo.git(*OFF, "switch", "-q", other)
    commit(world, {"src/new.py": "y = 1\n"})
    world.repo.git(*OFF, "switch", "-q", "main")
    # Path by path, both did what the other left alone.
    world.repo.git("read-tree", "-m", "--aggressive", "main~1", "main", "side")
    assert world.repo.ask("ls-files", "src", "moved").splitlines() == [
        *("moved/New/d.py", "moved/deep/c.py", "src/new.py")
    ]
    assert join(world) == HANDED_ON


def test_an_index_that_is_not_what_git_merges_is_handed_on(worlds: Worlds) -> None:
    world = merged(forked(worlds))
    world.repo.git("rm", "-q", "--cached", "empty")
    assert join(world) == HANDED_ON
    world.repo.git("read-tree", "main")
    assert join(world) == HANDED_ON
    assert join(merged(world)) == RECOGNISED
    # Of several heads each has a variable.
    assert join(world, **{f"GITHEAD_{world.repo.head()}": "another"}) == HANDED_ON
    assert join(world, PATCHGATE_FULL="", CLAUDECODE="1") == HANDED_ON


def test_the_full_check_accepts_in_silence_what_is_recognised(worlds: Worlds) -> None:
    merges = make_merges(worlds)
    number = 400 if IS_LONG else 12
    for seed in range(SEED, SEED + number):
        merges.try_one(seed)
    assert merges.counts["recognised"] >= number // 8
