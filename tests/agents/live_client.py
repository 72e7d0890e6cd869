"""Real clients of coding agents from npm, each in a temporary home with nothing of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.amount import IS_LONG
from tests.world import Repo

SECONDS = 600
needs_npm = pytest.mark.skipif(
    not IS_LONG or shutil.which("npm") is None, reason="needs PATCHGATE_LONG=1 and npm"
)


def install_client(folder: Path, package: str, program: str) -> str:
    """Install a client; return its program. npm has the settings of this machine, the client has not."""
    words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), package]
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    return str(folder / "node_modules" / ".bin" / program)


def run_client(repo: Repo, words: list[str], more: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run a client in a repository; it reaches nothing but loopback by the proxies that it is given."""
    nowhere = "http://127.0.0.1:9"
    proxies = {"http_proxy": nowhere, "https_proxy": nowhere, "no_proxy": "127.0.0.1,localhost"}
    node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
    world = {**repo.env, "PATH": f"{repo.env['PATH']}:{node}", **proxies, **more}
    return subprocess.run(
        words,
        cwd=repo.path,
        env=world,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
