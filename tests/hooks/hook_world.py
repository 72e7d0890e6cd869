"""A repository whose installed hooks call a `git-patchgate` that only writes down what it was asked.

The shims, git and what is chained are real; what patchgate would say is told beforehand by its exit code.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from patchgate.git.repository import open_repository
from patchgate.hooks.install import Installed, install_hooks
from tests.world import Repo

# Argument line, environment of interest and standard input go into one file a call.
_RECORDER = """\
#!/bin/sh
n=$(ls '{folder}' | wc -l)
{{ printf '%s\\n' "$*"; printf 'no-replace=%s\\n' "${{GIT_NO_REPLACE_OBJECTS-}}"
  case $2 in pre-push | pre-receive | reference-transaction) cat ;; esac; }} >'{folder}'/$n-$$
exit "$(cat '{folder}.code')"
"""


@dataclass(frozen=True)
class Call:
    """One call of the recorder: its arguments, what it read, and whether replacements were off."""

    arguments: str
    stdin: str
    replaces_nothing: bool


class Recorder:
    """A git-patchgate that says what it is told to say."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "it's patchgate" / "git-patchgate"
        self._calls = folder / "calls"
        self._calls.mkdir(parents=True)
        self.program.parent.mkdir(parents=True)
        self.program.write_text(_RECORDER.format(folder=self._calls), encoding="utf-8")
        self.program.chmod(0o755)
        self.say(0)

    def say(self, code: int) -> None:
        """End with this exit code from now on."""
        (self._calls.parent / "calls.code").write_text(f"{code}\n", encoding="ascii")

    @property
    def calls(self) -> list[Call]:
        """Every call, in order."""
        found = []
        for place in sorted(self._calls.iterdir(), key=lambda each: int(each.name.split("-")[0])):
            first, second, rest = place.read_text(encoding="utf-8").split("\n", 2)
            found.append(Call(first, rest, second == "no-replace=1"))
        return found

    @property
    def asked(self) -> list[str]:
        """The hooks that called, in order."""
        return [call.arguments.removeprefix("hook ") for call in self.calls]

    def forget(self) -> None:
        """Begin anew."""
        for place in self._calls.iterdir():
            place.unlink()

    def remove(self) -> None:
        """Take the program away, as when its environment was deleted."""
        shutil.rmtree(self.program.parent)


def install(repo: Repo, recorder: Recorder, *, is_server: bool = False) -> Installed:
    """Install the hooks so that they call the recorder."""
    repository = open_repository(repo.env, str(repo.path))
    return install_hooks(repository, repo.env, str(recorder.program), is_server=is_server)


def without_patchgate(env: dict[str, str]) -> str:
    """Give a PATH on which no git-patchgate is."""
    folders = env["PATH"].split(os.pathsep)
    return os.pathsep.join(
        folder for folder in folders if not os.path.exists(os.path.join(folder, "git-patchgate"))
    )
