"""A repository with a component whose baseline holds: contract, tests and implementation of `shaping`.

The baseline is written as a capture writes it, from git's own answers, without running any test.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from patchgate.change.path import RepoPath
from patchgate.declared.baseline import RecordedFile, write_baseline
from patchgate.declared.component import Component, Role
from patchgate.declared.config import parse
from tests.world import Content, Repo

CONTRACT = "contracts/shaping/interface.json"
TESTS = "tests/contracts/test_shaping.py"
CODE = "src/shaping/__init__.py"
BASELINE = ".patchgate/baselines/shaping.json"
POLICY = f"""\
[components.shaping]
contract = "{CONTRACT}"
tests = ["tests/contracts/test_shaping*.py"]
implementation = ["src/shaping/**"]
"""
TEXT_OF_TESTS = """\
import shaping


def test_area() -> None:
    assert shaping.area(2, 3) == 6
    assert shaping.area(0, 3) == 0


def test_side() -> None:
    assert shaping.side(9) == 3
"""
TEXT_OF_CODE = """\
def area(width, height):
    return width * height


def side(square):
    return int(square ** 0.5)
"""


def contract(version: str = "1.0.0", **more: Any) -> str:
    """Write a contract of two functions."""
    none = [{"kind": "none", "target": "none"}]
    functions = [
        {
            "name": "area",
            "description": "The product of width and height.",
            "inputs": [{"name": "width", "type": "int"}, {"name": "height", "type": "int"}],
            "output": {"type": "int"},
            "side_effects": none,
        },
        {"name": "side", "inputs": [{"name": "square", "type": "int"}], "side_effects": none},
    ]
    document = {"component_id": "shaping", "version": version, "functions": functions}
    return json.dumps({**document, **more}, indent=2) + "\n"


FILES: dict[str, Content] = {
    CONTRACT: contract(),
    TESTS: TEXT_OF_TESTS,
    CODE: TEXT_OF_CODE,
    "src/shaping/more.py": "MORE = 1\n",
    "README.md": "hello\n",
}


def capture(repo: Repo, policy: str = POLICY) -> dict[str, Content]:
    """Write the baselines of all components of a policy as a capture of the index does; stage nothing."""
    found: dict[str, Content] = {}
    listed = repo.git("ls-files", "-z", "--stage").split(b"\0")[:-1]
    for name, settings in parse(policy.encode(), "patchgate.toml").components.items():
        component = Component(name, settings)
        files: dict[RepoPath, RecordedFile] = {}
        for line in listed:
            about, _, raw = line.partition(b"\t")
            mode, oid, _ = about.decode().split(" ")
            role = component.role(RepoPath(raw))
            if role is not None:
                content = repo.git("cat-file", "blob", oid)
                files[RepoPath(raw)] = RecordedFile(
                    Role(role), mode, oid, hashlib.sha256(content).hexdigest()
                )
        found[f".patchgate/baselines/{name}.json"] = write_baseline(name, files)
    return found


def make(folder: Path, policy: str = POLICY, files: dict[str, Content] | None = None) -> Repo:
    """Make the repository: a policy, the files, the baselines, each in a commit of its own."""
    repo = Repo.create(folder)
    repo.policy(policy)
    repo.commit(FILES if files is None else files, "Files")
    repo.commit(capture(repo, policy), "Baselines")
    return repo
