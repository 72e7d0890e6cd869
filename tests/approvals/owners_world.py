"""A server with hooks, a clone that pushes to it, and people with SSH keys, for the tests of owners."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.signing import REF, SIGNERS, Key
from tests.world import Answer, Repo

ID = "repository-1"
OWNED = '[[owners]]\npaths = ["@policy"]\n'
GOVERNED = f'[policy]\n{OWNED}[governance]\nid = "{ID}"\n'


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
        keys = {name: Key.make(folder, name) for name in people}
        if signers:
            dev.commit({SIGNERS: "".join(keys[name].allowed(f"{name}@example.com") for name in signers)})
        dev.policy(policy)
        dev.commit({"a": "1\n", "infra/main.tf": "1\n"})
        dev.git("clone", "-q", "--bare", ".", str(folder / "server.git"))
        server = dev.at(folder / "server.git")
        dev.git("remote", "add", "origin", str(server.path))
        dev.git("fetch", "-q", "origin")
        dev.git("remote", "set-head", "origin", "main")
        team = cls(server, dev, keys)
        team.install(*(f"--signer={keys[name].public} {name}@example.com" for name in server_signers))
        return team

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

    def push(self, *refs: str) -> Answer:
        """Push without local hooks; the answer is git's, with what the server said."""
        notes = [REF] if self.dev.try_git("rev-parse", "-q", "--verify", REF).returncode == 0 else []
        done = self.dev.try_git("push", "--no-verify", "origin", *(refs or ("main",)), *notes)
        return Answer(done.returncode, "", done.stderr.decode("utf-8", "backslashreplace"))

    def head(self, ref: str = "main") -> str:
        """The commit that a ref of the server has."""
        return self.server.ask("rev-parse", ref)
