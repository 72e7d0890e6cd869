"""A patchgate that is installed in a virtual environment of its own, and can be upgraded and removed there.

Its packages are copied, as pip and uv put them there; what it depends on comes from the environment that runs
the tests. Each start of it is written down.
"""

from __future__ import annotations

import atexit
import compileall
import functools
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

from tests.world import Answer, Repo, pinned_environment

ROOT = Path(__file__).parents[3]
_PROGRAM = """\
#!/bin/sh
echo "$*" >>'{starts}'
exec '{python}' -m patchgate "$@"
"""


@functools.cache
def _compiled() -> Path:
    """Make one compiled copy of the package, as pip leaves it; compiling costs two seconds."""
    folder = Path(tempfile.mkdtemp(prefix="patchgate-compiled-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    package = folder / "patchgate"
    shutil.copytree(ROOT / "patchgate", package, ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(package, quiet=2)
    return package


class Tool:
    """An installed patchgate: `python` is its interpreter, `program` what hooks start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.program = folder / "bin" / "git-patchgate"
        self._starts = folder.with_name(folder.name + ".starts")
        venv.EnvBuilder(symlinks=True).create(folder)
        (self._packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        self.program.write_text(_PROGRAM.format(starts=self._starts, python=self.python), encoding="utf-8")
        self.program.chmod(0o755)

    @property
    def _packages(self) -> Path:
        major, minor = sys.version_info[:2]
        return self.folder / "lib" / f"python{major}.{minor}" / "site-packages"

    def upgrade(self, version: str) -> None:
        """Put another version in the place of the one that is there, as pip and uv do."""
        package = self._packages / "patchgate"
        if package.exists():
            shutil.rmtree(package)
        shutil.copytree(_compiled(), package)
        text = f'__version__ = "{version}"\nRULES_VERSION = 1\n'
        (package / "__init__.py").write_text(text, encoding="utf-8")

    def remove(self) -> None:
        """Remove the whole environment."""
        shutil.rmtree(self.folder)

    def run(self, repo: Repo, *arguments: str) -> Answer:
        """Start it in a repository."""
        done = subprocess.run(
            [self.program, *arguments], cwd=repo.path, env=repo.env, capture_output=True, check=False
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode("utf-8", "backslashreplace"))

    def starts(self) -> list[str]:
        """What it was started with since this was last asked."""
        said = self._starts.read_text(encoding="utf-8").splitlines() if self._starts.exists() else []
        self._starts.unlink(missing_ok=True)
        return said


def repository(folder: Path) -> Repo:
    """A repository that denies `runs`, on whose PATH there is no patchgate."""
    env = pinned_environment(folder / "home") | {"PATH": "/usr/bin:/bin"}
    # The copies of the program may keep what was compiled.
    del env["PYTHONDONTWRITEBYTECODE"]
    repo = Repo(folder / "repo", env)
    repo.path.mkdir(parents=True)
    repo.git("init", "-q", "-b", "main")
    repo.policy('[policy]\ndeny_prefixes = ["runs"]\n[message]\nlevel = "off"\n')
    return repo
