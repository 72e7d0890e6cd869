"""How a repository is brought into the state of a case, and how what git said is changed.

Decides no case: these are the steps of which `cases` is made.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patchgate.hooks.fast.cache_files import sealed_policy
from tests.hooks.fast.boring_world import Arrange, World

Craft = Callable[[bytes], bytes]
OTHER_OID = b"1" * 40
ACCEPTED = "{commit} {tree} {parent}\n"


def staged(**files: str | bytes) -> Arrange:
    """Stage these files."""
    return named(files)


def named(files: dict[str, str | bytes]) -> Arrange:
    """Stage files by names that are no words."""

    def arrange(world: World) -> None:
        world.repo.stage(files)

    return arrange


boring = staged(a="2\n")


def removed(name: str) -> Arrange:
    """Stage that a file goes."""

    def arrange(world: World) -> None:
        world.repo.git("rm", "-q", "--", name)

    return arrange


def moved_beside_a_marker(world: World) -> None:
    """Stage a rename, after a file with a conflict marker."""
    world.repo.git("mv", "b", "new")
    world.repo.stage({"a": "<<<<<<< HEAD\n"})


def then(*steps: Arrange) -> Arrange:
    """Do one after another."""

    def arrange(world: World) -> None:
        for step in steps:
            step(world)

    return arrange


def in_index(name: str, mode: str = "100644") -> Arrange:
    """Stage an entry that no file system here need be able to hold."""

    def arrange(world: World) -> None:
        oid = world.repo.git("hash-object", "-w", "--stdin", stdin=b"x\n").decode().strip()
        world.repo.git("update-index", "--add", "--cacheinfo", f"{mode},{oid},{name}")

    return arrange


def kept(name: str, content: str | bytes) -> Arrange:
    """Write a file of patchgate's in the repository."""

    def arrange(world: World) -> None:
        raw = content.encode("utf-8") if isinstance(content, str) else content
        (world.state / name).write_bytes(raw)

    return arrange


def recorded(kind: str) -> Arrange:
    """Let the ledger say that something was let through."""
    return kept("events.jsonl", f'{{"kind":"{kind}","about":{{}}}}\n')


def unanswered(world: World) -> None:
    """Commit past all hooks, so that nobody has answered for HEAD."""
    world.repo.stage({"b": "2\n"})
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Past the hooks")


def receipt(form: str) -> Arrange:
    """Write a line for HEAD into the receipts, of `{commit}`, `{tree}` and `{parent}`."""

    def arrange(world: World) -> None:
        words = world.repo.ask("log", "-1", "--format=%H %T %P").split(" ")
        line = form.format(commit=words[0], tree=words[1], parent=words[2])
        (world.state / "receipts").write_text(line, encoding="ascii")

    return arrange


def below(*steps: Arrange) -> Arrange:
    """Let HEAD have its receipt, above a commit for which nobody has answered."""
    return then(unanswered, beyond, receipt(ACCEPTED), *steps, boring)


def beyond(world: World) -> None:
    """Commit once more past all hooks."""
    world.repo.stage({"b": "3\n"})
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Once more")


def told(line: str) -> Arrange:
    """Say how far branches were told, of `{head}`."""

    def arrange(world: World) -> None:
        text = line.format(head=world.repo.head())
        (world.state / "told").write_text(text, encoding="ascii")

    return arrange


def with_an_intent(world: World) -> None:
    """Store an intent, of whichever worktree."""
    place = world.state / "intents" / "i-0000000001.json"
    place.parent.mkdir()
    place.write_bytes(b"stored\n")


def without_config(world: World) -> None:
    """Take the repository's own config away, which git can do without."""
    (world.git_dir / "config").unlink()


def with_long_config(world: World) -> None:
    """Let the config be longer than what is read of it."""
    place = world.git_dir / "config"
    place.write_text(f"# {'x' * (300 << 10)}\n" + place.read_text(encoding="utf-8"), encoding="utf-8")


def by_another_name(world: World) -> None:
    """Let the branch be another one's name."""
    world.repo.git("branch", "real")
    world.repo.git("symbolic-ref", "refs/heads/main", "refs/heads/real")


def by_a_symlink(world: World) -> None:
    """Let the branch be another one's name, as git wrote it of old."""
    world.repo.git("branch", "real")
    place = world.git_dir / "refs" / "heads" / "main"
    place.unlink()
    place.symlink_to("refs/heads/real")


def origin_has(name: str, line: str) -> Arrange:
    """Write a ref of origin's, of `{head}`."""

    def arrange(world: World) -> None:
        place = world.git_dir / "refs" / "remotes" / "origin" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(line.format(head=world.repo.head()), encoding="ascii")

    return arrange


def long_path(world: World) -> None:
    """Change a file in so many folders that its path is too long."""
    place = "/".join(["p" * 99] * 41)
    in_index(place)(world)
    world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "Long")
    settle(world)
    oid = world.repo.ask("rev-parse", "HEAD:a")
    world.repo.git("update-index", "--cacheinfo", f"100644,{oid},{place}")


def settle(world: World) -> None:
    """Let HEAD be among what was there at install."""
    with open(world.state / "settled", "a", encoding="ascii") as file:
        file.write(world.repo.head() + "\n")


def attributes(line: str) -> Arrange:
    """Set attributes that are no part of the change."""

    def arrange(world: World) -> None:
        place = world.git_dir / "info" / "attributes"
        place.parent.mkdir(exist_ok=True)
        place.write_text(line + "\n", encoding="utf-8")

    return arrange


def committed(files: dict[str, str | bytes]) -> Arrange:
    """Commit files that were there at install."""

    def arrange(world: World) -> None:
        world.repo.stage(files)
        world.repo.git("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "More")
        settle(world)

    return arrange


def described(world: World) -> None:
    """Name the branch as git describes HEAD, so that origin's of this name seems to be there."""
    name = f"refs/heads/v1-g{world.repo.ask('rev-parse', '--short=12', 'HEAD')}"
    world.repo.git("update-ref", name, "HEAD")
    world.repo.git("symbolic-ref", "HEAD", name)


def tagged(world: World) -> None:
    """Make a tag that git takes for origin's branch, where that is missing."""
    world.repo.git("tag", "refs/remotes/origin/main")


def merging(world: World) -> None:
    """Leave a merge that waits to be committed."""
    head = world.repo.head()
    (world.git_dir / "MERGE_HEAD").write_text(head + "\n", encoding="ascii")


def trusting(world: World) -> None:
    """Take the policy from another ref."""
    world.repo.git("config", "patchgate.trustRef", "refs/heads/main")


def _move_home(world: World) -> None:
    """Give a world a home of its own, which no other sees."""
    home = world.repo.path.parent / "own-home"
    home.mkdir()
    world.repo.env |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "xdg")}


def trusting_at_home(world: World) -> None:
    """Take the policy from another ref, for every repository of this user."""
    _move_home(world)
    world.repo.git("config", "--global", "patchgate.trustRef", "refs/heads/main")


def trusting_in_xdg(world: World) -> None:
    """Take the policy from another ref, in the other file of this user."""
    _move_home(world)
    place = Path(world.repo.env["XDG_CONFIG_HOME"]) / "git" / "config"
    place.parent.mkdir(parents=True)
    place.write_text("[patchgate]\n\ttrustRef = refs/heads/main\n", encoding="utf-8")


def trusting_in_worktree(world: World) -> None:
    """Take the policy from another ref, in this worktree."""
    world.repo.git("config", "extensions.worktreeConfig", "true")
    world.repo.git("config", "--worktree", "patchgate.trustRef", "refs/heads/main")


def including(text: str) -> Arrange:
    """Let the config include another file."""

    def arrange(world: World) -> None:
        (world.git_dir / "more").write_text(text, encoding="utf-8")
        world.repo.git("config", "include.path", "more")

    return arrange


def file_for_folder(world: World) -> None:
    """Put a folder where a file was."""
    world.repo.git("rm", "-q", "empty")
    world.repo.stage({"empty/inside": "x\n"})


def compiled(change: Callable[[dict[str, Any]], None]) -> Arrange:
    """Change a compiled policy, and seal it again."""

    def arrange(world: World) -> None:
        held = marshal.loads(world.compiled.read_bytes()[8:])
        change(held)
        world.compiled.write_bytes(sealed_policy(held))

    return arrange


def by_another(field: str, place: int, value: object) -> Arrange:
    """Let a policy be compiled by another tool, or another installation."""

    def change(held: dict[str, Any]) -> None:
        words = list(held[field])
        words[place] = value
        held[field] = tuple(words)

    return compiled(change)


def break_seal(world: World) -> None:
    """Let the seal of a compiled policy be another's."""
    raw = world.compiled.read_bytes()
    world.compiled.write_bytes(bytes(8) + raw[8:])


def answer(said: bytes, number: int) -> tuple[int, int]:
    """Tell where an answer of cat-file begins and ends: the first ones are lines, the last is a content."""
    at = 0
    for _ in range(number):
        at = said.index(b"\n", at) + 1
    return at, said.index(b"\n", at) + 1


def instead(number: int, old: bytes, new: bytes) -> Craft:
    """Let an answer of cat-file hold something else."""

    def craft(said: bytes) -> bytes:
        at, end = answer(said, number)
        changed = said[at:end].replace(old, new)
        assert changed != said[at:end]
        return said[:at] + changed + said[end:]

    return craft


def of_another(number: int) -> Craft:
    """Let an answer of cat-file speak of another object."""

    def craft(said: bytes) -> bytes:
        at, end = answer(said, number)
        return said[:at] + OTHER_OID + said[at + len(OTHER_OID) : end] + said[end:]

    return craft


def unended(said: bytes) -> bytes:
    """Let HEAD's tree, before the answers about remote branches, be longer than it was said to be."""
    after = b"refs/remotes/origin/HEAD^{tree} missing\n"
    assert said.count(b"\n" + after) == 1
    return said.replace(b"\n" + after, b"x" + after)


def replaced(old: bytes, new: bytes) -> Craft:
    """Let the diff say something else, wherever it said this."""

    def craft(said: bytes) -> bytes:
        assert old in said
        return said.replace(old, new)

    return craft


def unfinished(said: bytes) -> bytes:
    """Cut what says that git has ended well."""
    assert said.endswith(b"\0whole")
    return said.removesuffix(b"\0whole")
