"""A repository with components whose commits, and so the baselines, are of any day."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from patchgate.git.repository import Repository
from tests import component_world
from tests.component_world import capture, declared, files
from tests.world import Content, Repo

DAY = 86_400
START = 20_000
"""The day of the first commit, since the epoch."""


class Componented(Repo):
    """A repository whose commits are dated by the day, counted from the first."""

    @property
    def opened(self) -> Repository:
        return component_world.opened(self)

    def at_day(self, day: float) -> float:
        """The noon of a day, in seconds since the epoch."""
        return (START + day) * DAY + DAY / 2

    def on(self, day: int, files: Mapping[str, Content] | None = None, *, message: str = "Change") -> str:
        """Commit everything at noon of a day."""
        self.stage(files)
        date = f"@{int(self.at_day(day))} +0000"
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message, GIT_COMMITTER_DATE=date)
        return self.head()

    def declare(self, *names: str, more: str = "") -> str:
        """Write the config of some components."""
        return '[message]\nlevel = "off"\n' + declared(*names) + more

    def captured(self, *names: str) -> dict[str, Content]:
        """Stage everything; give the baselines that a capture of it would write."""
        self.git("add", "-A")
        return capture(self, declared(*names))


def componented(folder: Path, *names: str, more: str = "", git: tuple[str, ...] = ()) -> Componented:
    """Make a repository with components and their baselines, all on day 0; `b` after `a` depends on `a`."""
    made = Repo.create(folder, *git)
    repo = Componented(made.path, made.env)
    repo.on(0, {"patchgate.toml": repo.declare(*names, more=more)})
    before: list[str] = []
    for name in names:
        for path, content in files(name, *before[-1:]).items():
            repo.write(path, content)
        before.append(name)
    repo.on(0, repo.captured(*names))
    return repo
