"""A server with hooks, a clone that pushes to it, and people with SSH keys, for the tests of owners."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.amount import IS_LONG
from tests.signing import REF, SIGNERS, Key
from tests.world import Answer, Repo

ID = "repository-1"
OWNED = '[[owners]]\npaths = ["@policy"]\n'
GOVERNED = f'[policy]\n{OWNED}[governance]\nid = "{ID}"\n'


@functools.cache
def key_of(name: str) -> Key:
    """Make the key of a person, once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="keys-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Key.make(folder, name)


@dataclass(frozen=True)
class Team:
    """A server, and one clone of it whose user signs with a chosen key."""

    server: Repo
    dev: Repo
    keys: dict[str, Key]

    @classmethod
    def make(
        cls,
        folder: Path,
        policy: str = GOVERNED,
        *,
        signers: tuple[str, ...] = ("alice",),
        people: tuple[str, ...] = ("alice", "bob", "mallory"),
        server_signers: tuple[str, ...] = (),
    ) -> Team:
        """Make them: the base has the policy and the signers, and the hook is installed on the server."""
        dev = Repo.create(folder)
        keys = {name: key_of(name) for name in people}
        team = cls(dev.at(folder / "server.git"), dev, keys)
        dev._repeated(lambda: team._begin(policy, signers), "team", policy, signers)
        team.install(*(f"--signer={keys[name].public} {name}@example.com" for name in server_signers))
        return team

    def _begin(self, policy: str, signers: tuple[str, ...]) -> None:
        dev, keys = self.dev, self.keys
        if signers:
            dev.commit({SIGNERS: "".join(keys[name].allowed(f"{name}@example.com") for name in signers)})
        dev.policy(policy)
        dev.commit({"a": "1\n", "infra/main.tf": "1\n"})
        dev.git("clone", "-q", "--bare", ".", str(self.server.path))
        dev.git("remote", "add", "origin", str(self.server.path))
        dev.git("fetch", "-q", "origin")
        dev.git("remote", "set-head", "origin", "main")

    def install(self, *arguments: str) -> Answer:
        """Install the hook of the server."""
        done = self.server.cli("install", "--server", *arguments)
        assert done.code == 0, done.err
        return done

    def approve(self, who: str, change: str = "HEAD", *arguments: str) -> Answer:
        """Let somebody sign an approval."""
        self.dev.git("config", "user.signingKey", str(self.keys[who].path))
        mail = f"{who}@example.com"
        return self.dev.cli(
            "approve",
            change,
            "--reason",
            "the new limits were reviewed by the team",
            "--sign",
            *arguments,
            GIT_COMMITTER_NAME=who,
            GIT_COMMITTER_EMAIL=mail,
        )

    def push(self, *refs: str, is_real: bool = IS_LONG) -> Answer:
        """Push without local hooks; the answer is git's, with what the server said.

        By default the hook is called in this process, with the lines that git would give it.
        """
        refs = refs or ("main",)
        has_notes = self.dev.try_git("rev-parse", "-q", "--verify", REF).returncode == 0
        if is_real:
            words = ("push", "--no-verify", "origin", *refs, *([REF] if has_notes else []))
            done = self.dev.try_git(*words)
            return Answer(done.returncode, "", done.stderr.decode("utf-8", "backslashreplace"))
        (self.server.path / "objects" / "info" / "alternates").write_text(f"{self.dev.git_dir}/objects\n")
        moves = [self._move(ref) for ref in (*refs, *([REF] if has_notes else []))]
        moves = [(old, new, name) for old, new, name in moves if old != new]
        lines = "".join(f"{old} {new} {name}\n" for old, new, name in moves)
        answer = self.server.answer_hook("pre-receive", lines.encode())
        if answer.code == 0:
            for _, new, name in moves:
                self.server.git("update-ref", name, new)
                if name.startswith("refs/heads/"):
                    tracking = f"refs/remotes/origin/{name.removeprefix('refs/heads/')}"
                    self.dev.git("update-ref", tracking, new)
        return Answer(answer.code, "", answer.out + answer.err)

    def _move(self, ref: str) -> tuple[str, str, str]:
        """Return the old value on the server, the new one, and the full name of a ref that is pushed."""
        source, _, target = ref.removeprefix("+").partition(":")
        name = target or source
        name = name if name.startswith("refs/") else f"refs/heads/{name}"
        old = self.server.try_git("rev-parse", "-q", "--verify", name).stdout.decode().strip()
        return old or "0" * 40, self.dev.ask("rev-parse", source), name

    def head(self, ref: str = "main") -> str:
        """The commit that a ref of the server has."""
        return self.server.ask("rev-parse", ref)
