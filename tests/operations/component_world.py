"""A repository with components, whose baselines are recorded as a capture would, on any day."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from patchgate.declared.baseline import write_baseline
from patchgate.declared.component import Components
from patchgate.declared.settings import ComponentSettings
from patchgate.git.objects import Objects
from patchgate.git.repository import Repository, open_repository
from patchgate.git.tree_view import TreeView
from patchgate.operations.judge.drift import record
from tests.world import Content, Repo

DAY = 86_400
START = 20_000
"""The day of the first commit, since the epoch."""
_TEST = "def test_run():\n    assert run('a') == 'a'\n"


def contract_of(name: str, *dependencies: str, version: str = "1.0", description: str = "") -> str:
    """Write a contract with one function."""
    function = {
        "name": "run",
        "description": "Gives its input back.",
        "inputs": [{"name": "text", "type": "str"}],
        "output": {"type": "str"},
        "side_effects": [{"kind": "none", "target": "nothing"}],
    }
    contract = {
        "component_id": name,
        "version": version,
        "description": description or f"What {name} does.",
        "dependencies": list(dependencies),
        "functions": [function],
    }
    return json.dumps(contract, indent=2) + "\n"


def settings_of(name: str, parent: str | None = None) -> ComponentSettings:
    """Declare a component as `Componented.declare` does."""
    return ComponentSettings(
        f"contracts/{name}/interface.json",
        (f"tests/{name}/test_*.py",),
        (f"src/{name}/**",),
        parent,
    )


class Componented(Repo):
    """A repository whose commits are dated by the day, counted from the first."""

    @property
    def opened(self) -> Repository:
        return open_repository(self.env, str(self.path))

    def at_day(self, day: float) -> float:
        """The noon of a day, in seconds since the epoch."""
        return (START + day) * DAY + DAY / 2

    def on(self, day: int, files: Mapping[str, Content] | None = None, *, message: str = "Change") -> str:
        """Commit everything at noon of a day."""
        self.stage(files)
        date = f"@{int(self.at_day(day))} +0000"
        self.git("commit", "-q", "--no-verify", "--allow-empty", "-m", message, GIT_COMMITTER_DATE=date)
        return self.ask("rev-parse", "HEAD")

    def declare(self, *names: str, more: str = "") -> str:
        """Write the config of some components."""
        lines = ['[message]\nlevel = "off"\n']
        for name in names:
            made = settings_of(name)
            lines.append(
                f"[components.{name}]\ncontract = {json.dumps(made.contract)}\n"
                f"tests = {json.dumps(list(made.tests))}\n"
                f"implementation = {json.dumps(list(made.implementation))}\n"
            )
        return "\n".join(lines) + more

    def component(self, name: str, *dependencies: str) -> dict[str, Content]:
        """The files of a component that keeps its word."""
        return {
            f"contracts/{name}/interface.json": contract_of(name, *dependencies),
            f"tests/{name}/test_{name}.py": f"from {name} import run\n\n\n{_TEST}",
            f"src/{name}/__init__.py": "def run(text):\n    return text\n",
        }

    def captured(self, *names: str) -> dict[str, Content]:
        """The baselines that a capture of what is in the working tree would write."""
        self.git("add", "-A")
        tree = self.ask("write-tree")
        components = Components({name: settings_of(name) for name in names})
        with Objects(self.opened) as objects:
            view = TreeView(objects, tree)
            return {
                f".patchgate/baselines/{name}.json": write_baseline(name, record(components[name], view))
                for name in names
            }


def componented(folder: Path, *names: str, more: str = "", git: tuple[str, ...] = ()) -> Componented:
    """Make a repository with components and their baselines, all on day 0; `b` after `a` depends on `a`."""
    made = Repo.create(folder, *git)
    repo = Componented(made.path, made.env)
    repo.on(0, {"patchgate.toml": repo.declare(*names, more=more)})
    before: list[str] = []
    for name in names:
        for path, content in repo.component(name, *before[-1:]).items():
            repo.write(path, content)
        before.append(name)
    repo.on(0, repo.captured(*names))
    return repo
