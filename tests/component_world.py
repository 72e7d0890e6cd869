"""Components in real repositories: declaration, contract, files; and `shaping`, whose baseline holds.

A baseline is written as a capture writes it, from git's own answers, without running any test: `capture` is
what captures are held against.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from patchgate.components.baseline_file import RecordedFile, write_baseline
from patchgate.git.path import RepoPath
from patchgate.git.repository import Repository, open_repository
from patchgate.policy.component import Component, Components
from patchgate.policy.config import parse
from tests.world import Content, Repo

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


def declared(*names: str, **keys: Any) -> str:
    """Declare components; the keys stand beside those that follow from the name, or in their place."""
    tables = []
    for name in names:
        table = {
            "contract": f"contracts/{name}/interface.json",
            "tests": [f"tests/{name}/**"],
            "implementation": [f"src/{name}/**"],
            **keys,
        }
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in table.items()]
        tables.append("".join([f"[components.{name}]\n", *lines]))
    return "\n".join(tables)


def components(policy: str) -> Components:
    """Read what a policy declares."""
    return Components(parse(policy.encode(), "patchgate.toml").components)


def contract(name: str = "shaping", *needs: str, version: str = "1.0.0", **more: Any) -> str:
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
    document = {"component_id": name, "version": version, "dependencies": needs, "functions": functions}
    return json.dumps({**document, **more}, indent=2) + "\n"


def files(name: str, *needs: str, **more: Any) -> dict[str, Content]:
    """Give the files of a component that keeps its word, where `declared` looks for them."""
    return {
        f"contracts/{name}/interface.json": contract(name, *needs, **more),
        f"tests/{name}/test_{name}.py": TEXT_OF_TESTS.replace("shaping", name),
        f"src/{name}/__init__.py": TEXT_OF_CODE,
    }


def opened(repo: Repo, **env: str) -> Repository:
    """Open a repository as the product does."""
    return open_repository(repo.env | env, str(repo.path))


def recorded(component: Component, listed: Iterable[tuple[bytes, str, str, bytes | None]]) -> bytes:
    """Write the baseline of its files among some; of each: path, mode, id and content."""
    found: dict[RepoPath, RecordedFile] = {}
    for raw, mode, oid, content in listed:
        role = component.role(RepoPath(raw))
        if role is not None:
            sha256 = None if content is None else hashlib.sha256(content).hexdigest()
            found[RepoPath(raw)] = RecordedFile(role, mode, oid, sha256)
    return write_baseline(component.id, found)


CONTRACT = "contracts/shaping/interface.json"
TESTS = "tests/contracts/test_shaping.py"
CODE = "src/shaping/__init__.py"
BASELINE = ".patchgate/baselines/shaping.json"
POLICY = declared("shaping", tests=["tests/contracts/test_shaping*.py"])
FILES: dict[str, Content] = {
    CONTRACT: contract(),
    TESTS: TEXT_OF_TESTS,
    CODE: TEXT_OF_CODE,
    "src/shaping/more.py": "MORE = 1\n",
    "README.md": "hello\n",
}


def capture(repo: Repo, policy: str = POLICY) -> dict[str, Content]:
    """Write the baselines of all components of a policy as a capture of the index does; stage nothing."""
    entries = []
    for line in repo.git("ls-files", "-z", "--stage").split(b"\0")[:-1]:
        about, _, raw = line.partition(b"\t")
        mode, oid, _ = about.decode().split(" ")
        entries.append((raw, mode, oid))
    contents = _contents(repo, sorted({oid for _, mode, oid in entries if mode != "160000"}))
    listed = [(raw, mode, oid, contents.get(oid)) for raw, mode, oid in entries]
    every = components(policy)
    return {f".patchgate/baselines/{name}.json": recorded(every[name], listed) for name in every.ids}


def _contents(repo: Repo, oids: list[str]) -> dict[str, bytes]:
    """Read blobs by one child of git."""
    raw = repo.git("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode())
    found = {}
    for oid in oids:
        header, _, raw = raw.partition(b"\n")
        size = int(header.split(b" ")[2])
        found[oid], raw = raw[:size], raw[size + 1 :]
    return found


def make(folder: Path, policy: str = POLICY, files: dict[str, Content] | None = None) -> Repo:
    """Make the repository of `shaping`: a policy, the files, the baselines, each in a commit of its own."""
    repo = Repo.create(folder)
    repo.policy(policy)
    repo.commit(FILES if files is None else files, "Files")
    repo.commit(capture(repo, policy), "Baselines")
    return repo
