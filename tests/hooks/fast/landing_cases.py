"""Commits that main is about to get and that are not boring: a case for each condition of `recognise_commit`.

Together with the cases of what is staged, these are all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from patchgate.git.repository import open_repository
from patchgate.hooks.fast.renewal import renew_all
from tests.hooks.fast.arrangements import ACCEPTED, boring, by_another_name, in_index, receipt, then
from tests.hooks.fast.boring_world import World
from tests.hooks.fast.cases import CASES, NEEDED, Case

Lands = Callable[[World], str]


def made(*arguments: str, on: str = "HEAD", message: str = "Land it") -> Lands:
    """Make a commit of what is staged that no ref reaches."""

    def lands(world: World) -> str:
        tree = world.repo.ask("write-tree")
        return world.repo.ask(*arguments, "commit-tree", "-p", on, "-m", message, tree)

    return lands


def on_another(world: World) -> str:
    """Make the commit on one that neither the branch nor its parent is."""
    tree = world.repo.ask("write-tree")
    other = world.repo.ask("commit-tree", "-p", "HEAD", "-m", "Unknown", "HEAD^{tree}")
    return world.repo.ask("commit-tree", "-p", other, "-m", "Land it", tree)


def under_a_new_policy(world: World) -> None:
    """Add the first policy past the hooks, as one that was accepted."""
    world.repo.stage({"patchgate.toml": "[policy.commit]\nmax_added_lines = 5\n"})
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Add the policy")
    receipt(ACCEPTED)(world)
    renew_all(open_repository(world.repo.env, str(world.repo.path)))


def in_the_place_of_a_policy(world: World) -> str:
    """Put a commit without a policy in the place of the one that adds it."""
    world.repo.git("read-tree", "HEAD^")
    in_index("a")(world)
    return made(on="HEAD^")(world)


def of_another_tree(said: bytes) -> bytes:
    """Let each commit name another tree than it has."""
    said, number = re.subn(rb"\ntree [0-9a-f]{40}\n", b"\ntree " + b"1" * 40 + b"\n", said)
    assert number
    return said


LANDING_CASES: dict[str, Case] = {
    "git reads no parent in the commit": Case(
        boring, alter=lambda said: said.replace(b"\nparent ", b"\nparens "), lands=made()
    ),
    "something is between parent and author": Case(
        boring, alter=lambda said: said.replace(b"\nauthor ", b"\nauthox "), lands=made()
    ),
    "the commit is on one that the branch does not have": Case(boring, lands=on_another),
    "the commit names another tree": Case(
        boring, alter=lambda said: of_another_tree(said) if b"\ntree " in said else said, lands=made()
    ),
    "the commit is in the place of the first policy": Case(
        under_a_new_policy, lands=in_the_place_of_a_policy
    ),
    "messages can be refused": Case(boring, '[message]\nlevel = "error"\n', lands=made()),
    "a trailer of ours": Case(boring, lands=made(message="Land it\n\nPatchgate-Intent: i-1")),
    "another encoding": Case(boring, lands=made("-c", "i18n.commitEncoding=latin1")),
    "the commit lands in a branch that is another one's name": Case(
        then(by_another_name, boring), lands=made()
    ),
}
LANDING_NEEDED: dict[str, str] = {
    "recognise_commit: parent == b'parent ' + head": "git reads no parent in the commit",
    "recognise_commit: author[:7] == b'author '": "something is between parent and author",
    "recognise_commit: head == old.encode() or parent == had.split(b'\\n', 2)[1]": (
        "the commit is on one that the branch does not have"
    ),
    "recognise_commit: tree == b'tree ' + result": "the commit names another tree",
    "recognise_commit: load_policy(common_dir + '/patchgate/fast', there, version) == policy": (
        "the commit is in the place of the first policy"
    ),
    "recognise_commit: not policy['refuses_messages']": "messages can be refused",
    "recognise_commit: b'\\npatchgate-' not in made.lower()": "a trailer of ours",
    "recognise_commit: b'\\nencoding ' not in made.partition(b'\\n\\n')[0]": "another encoding",
    "recognise_commit: not read(f'{common_dir}/{ref}').startswith(b'ref:')": (
        "the commit lands in a branch that is another one's name"
    ),
}
ALL_CASES = CASES | LANDING_CASES
ALL_NEEDED = NEEDED | LANDING_NEEDED
