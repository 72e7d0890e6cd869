"""The four managers: one and the same wish, in each one's own words, and where the peers come from.

The wish: nothing under `secrets/` or `protected/` changes, and no added line says `BAD`. patchgate gets a
policy; pre-commit, prek and lefthook run a script over the file names that they give it, at commit and at
push (and, in the one case that says so, at a merge commit). The peers are taken from PyPI, at these versions.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.bypass_place import REASON, Manager

PEERS = {"pre-commit": "4.7.0", "prek": "0.5.11", "lefthook": "2.2.2"}
_SCRIPT = """\
# Refuses every path under secrets/ or protected/, and every file that says BAD.
code=0
for name in "$@"; do
    case $name in
    secrets/* | protected/*) echo "refused: $name" && code=1 ;;
    esac
    if [ -f "$name" ] && [ "$name" != tools/refuse.sh ] && grep -q BAD -- "$name"; then
        echo "refused: BAD in $name" && code=1
    fi
done
exit $code
"""
_WEAKER = {"tools/refuse.sh": "exit 0\n"}
_POLICY = """\
[policy]
deny_prefixes = ["secrets", "protected"]

[policy.commit]
allow_gitlinks = true

[content]
deny = ["BAD"]

[push]
protected_refs = ["refs/heads/main", "refs/heads/release"]
"""


def patchgate(folder: Path | None = None) -> Manager:
    """Give patchgate, from `folder` or else from beside this interpreter."""
    folder = folder or Path(sys.executable).parent
    if not (folder / "git-patchgate").exists():
        raise SystemExit(f"there is no git-patchgate in {folder}: install patchgate there")
    return Manager(
        "patchgate",
        folder,
        lambda _: {"patchgate.toml": _POLICY},
        {"patchgate.toml": '[push]\nprotected_refs = ["refs/heads/main", "refs/heads/release"]\n'},
        ("git", "patchgate", "install"),
        {"PATCHGATE_SKIP": REASON},
        doctor=("git", "patchgate", "doctor"),
        log=("git", "patchgate", "log", "--format", "json"),
    )


def _framework_files(merges: bool) -> Mapping[str, str]:
    types = "pre-commit, pre-merge-commit, pre-push" if merges else "pre-commit, pre-push"
    config = f"""\
default_install_hook_types: [{types}]
repos:
  - repo: local
    hooks:
      - id: refuse
        name: refuse
        language: system
        entry: sh tools/refuse.sh
"""
    return {".pre-commit-config.yaml": config, "tools/refuse.sh": _SCRIPT}


def _lefthook_files(merges: bool) -> Mapping[str, str]:
    hooks = {"pre-commit": "{staged_files}", "pre-push": "{push_files}"}
    if merges:
        hooks["pre-merge-commit"] = "{staged_files}"
    config = "".join(
        f"{hook}:\n  commands:\n    refuse:\n      run: sh tools/refuse.sh {names}\n"
        for hook, names in hooks.items()
    )
    return {"lefthook.yml": config, "tools/refuse.sh": _SCRIPT}


def peers(folder: Path) -> list[Manager]:
    """Give the three peers, from a virtual environment that is made in `folder` if it is not there."""
    programs = folder / "bin"
    if not all((programs / name).exists() for name in PEERS):
        wanted = [f"{name}=={version}" for name, version in PEERS.items()]
        print(f"installing {', '.join(wanted)} into {folder} ...", file=sys.stderr)
        pip = (str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        for argv in ((sys.executable, "-m", "venv", str(folder)), (*pip, *wanted)):
            if subprocess.run(argv, check=False).returncode:
                raise SystemExit("the peers could not be installed: is the package index reachable?")
    framework = {"SKIP": "refuse"}
    return [
        Manager("pre-commit", programs, _framework_files, _WEAKER, ("pre-commit", "install"), framework),
        Manager("prek", programs, _framework_files, _WEAKER, ("prek", "install"), framework),
        Manager(
            "lefthook",
            programs,
            _lefthook_files,
            _WEAKER,
            ("lefthook", "install"),
            {"LEFTHOOK": "0"},
            doctor=("lefthook", "check-install"),
        ),
    ]
