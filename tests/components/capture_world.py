"""A repository with components, and `capture` as its command calls it."""

from __future__ import annotations

from pathlib import Path

from patchgate.components.capture import capture
from patchgate.components.capture_run import Capture, CaptureEnvironment, CaptureRequest
from tests.component_world import contract, declared, opened
from tests.world import Content, Repo

NOW = 1_700_000_000
# A third of what such a small run costs is to load plugins that it does not need.
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
GOOD = "from shaping import double\n\ndef test_double():\n    assert double(2) == 4\n"
CODE = "src/shaping/__init__.py"
TESTS = "tests/test_shaping.py"
BASELINE = ".patchgate/baselines/shaping.json"


def policy(name: str = "shaping", *command: str, more: str = "") -> str:
    """Declare a component with one file of tests."""
    words = {"test_command": list(command)} if command else {}
    return declared(name, tests=[f"tests/test_{name}.py"], **words) + more


def files(name: str = "shaping") -> dict[str, Content]:
    """Give the files of a component whose tests pass."""
    return {
        f"contracts/{name}/interface.json": contract(name),
        f"src/{name}/__init__.py": "def double(number):\n    return 2 * number\n",
        f"tests/test_{name}.py": GOOD.replace("shaping", name),
    }


def shaping(folder: Path, *command: str, more: str = "") -> Repo:
    """Make a repository with one component, committed."""
    repo = Repo.create(folder)
    repo.commit({"patchgate.toml": policy("shaping", *command, more=more), **files()})
    return repo


def captured(
    repo: Repo,
    *ids: str,
    from_disk: bool = False,
    reverify: bool = False,
    with_note: bool = False,
    now: float = NOW,
    **env: str,
) -> Capture:
    """Capture components, as the command does."""
    around = CaptureEnvironment(
        QUICK | repo.env | env, str(repo.path.parent / "cache"), now, lambda what, seconds: None
    )
    request = CaptureRequest(ids or ("shaping",), from_disk, reverify, with_note)
    return capture(opened(repo, **env), request, around)


def baseline(repo: Repo, name: str = "shaping") -> bytes | None:
    """Read what lies in the working tree as a component's baseline."""
    place = repo.path / f".patchgate/baselines/{name}.json"
    return place.read_bytes() if place.is_file() else None
