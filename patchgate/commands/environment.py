"""The environment of everything that the policy runs: commands, analyses, tests of components, authors.

Three layers, the later ones with priority: the variables of the caller, `[environment]`, and the `env` of a
command. `prepare_environment` adds the second layer and checks it once, before the first program is started;
`command_environment` adds the rest for each program. Does not run what the policy names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from patchgate.commands.programs import (
    NO_TREE,
    command_environment,
    decoded,
    find_in,
    find_program,
    is_program,
)
from patchgate.errors import PatchgateError, UndecidedError
from patchgate.git.quoting import first_of, printable
from patchgate.policy.run_settings import EnvironmentSettings
from patchgate.values import dataclass

BARE_PATH = "/usr/bin:/bin"
"""The PATH of programs that were not started from a shell (launchd, most desktops)."""
_FOLDERS_NAMED = 8
_SECONDS = 20.0
_ASK = "import importlib.util as u, sys; sys.exit(u.find_spec('pytest') is None)"
# Where programs often are, although PATH does not name it: in the repository, in the home folder, elsewhere.
_OF_ROOT = (".venv/bin", "venv/bin", "node_modules/.bin")
_OF_HOME = (".local/bin", ".cargo/bin", "go/bin")
_ELSEWHERE = ("/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/bin")
_PYTHONS = ("python3", "python")


def shared_environment(
    environ: Mapping[str, str], settings: EnvironmentSettings, root: str | None
) -> Mapping[str, str]:
    """Add `[environment]` to the variables of the caller.

    PATH is: the folder of `python_path` if that is a path, the caller's folders (or `/usr/bin:/bin`), and
    `extra_path_dirs`. A relative path begins at the root of the working tree, never in the scratch tree.

    Args:
        environ: the caller's; it is returned unchanged if the settings are the defaults.
        settings: what the policy says.
        root: the working tree, an absolute path; None if there is none, and relative paths are left out.
    """
    if settings == EnvironmentSettings():
        return environ
    python = settings.python_path
    first = [os.path.dirname(python) or os.sep] if "/" in python else []
    inherited = environ.get("PATH", "") if settings.inherit_path else BARE_PATH
    own = (_absolute(folder, root) for folder in first)
    extra = (_absolute(folder, root) for folder in settings.extra_path_dirs)
    folders = [*filter(None, own), *inherited.split(os.pathsep), *filter(None, extra)]
    return {**environ, **decoded(settings.env), "PATH": os.pathsep.join(dict.fromkeys(folders))}


def _absolute(path: str, root: str | None) -> str | None:
    decoded = os.fsdecode(path.encode())
    if os.path.isabs(decoded):
        return os.path.normpath(decoded)
    return None if root is None else os.path.normpath(os.path.join(root, decoded))


@dataclass(frozen=True, slots=True)
class ProgramPlaces:
    """Where the programs of a policy are, seen from one environment.

    `path` are the folders of PATH. `python` is the file that `python_path` means, None if there is none;
    `tools` are the files of the required programs, by name. `lacks_pytest` are the Pythons of test commands
    that cannot import pytest.
    """

    path: tuple[str, ...]
    python_path: str
    python: str | None
    tools: Mapping[str, str | None]
    lacks_pytest: tuple[str, ...] = ()

    @property
    def missing_tools(self) -> tuple[str, ...]:
        """The required programs that were not found, in order."""
        return tuple(name for name, file in self.tools.items() if file is None)

    @property
    def missing(self) -> tuple[str, ...]:
        """What is missing, one sentence each, safe to print; empty if the environment is complete."""
        sentences = []
        names = [printable(name, 60) for name in self.missing_tools]
        python = f"python_path {printable(self.python_path, 200)}"
        if self.python is None and "/" in self.python_path:
            sentences.append(f"{python} is not a program")
        elif self.python is None:
            names.insert(0, python)
        if names:
            were = "was" if len(names) == 1 else "were"
            folders = first_of(self.path, _FOLDERS_NAMED, printable) or "no folder"
            sentences.append(f"{', '.join(names)} {were} not found on PATH ({folders})")
        sentences += [f"{printable(each)} cannot import pytest" for each in self.lacks_pytest]
        return tuple(sentences)


def find_programs(
    environ: Mapping[str, str],
    settings: EnvironmentSettings,
    root: str | None,
    *,
    tools: Iterable[str] = (),
    test_commands: Iterable[Sequence[str]] = (),
) -> ProgramPlaces:
    """Find every program that the policy requires.

    Args:
        environ: the environment to search, already prepared.
        settings: what the policy says.
        root: the working tree, an absolute path; None if there is none.
        tools: more required programs.
        test_commands: those of components. For one that runs `PYTHON -m pytest`, that Python must be there
            and import pytest; it is started to ask.
    """
    runners = [tuple(each[:3]) for each in test_commands]
    # Only these are sure to be what they look like; any other command finds its own modules.
    pythons = [each[0] for each in runners if each[1:] == ("-m", "pytest")]
    names = [*settings.required_tools, *tools, *(each for each in pythons if "/" not in each)]
    found = {name: find_program(os.fsdecode(name.encode()), environ) for name in names}
    python = settings.python_path
    if "/" in python:
        file = _absolute(python, root)
        file = file if file is not None and is_program(file) else None
    else:
        file = find_program(os.fsdecode(python.encode()), environ)
    starts = dict.fromkeys(found[each] if "/" not in each else each for each in pythons)
    return ProgramPlaces(
        path=tuple(filter(None, environ.get("PATH", "").split(os.pathsep))),
        python_path=python,
        python=file,
        tools=found,
        lacks_pytest=tuple(
            each for each in starts if each and os.path.isabs(each) and not _has_pytest(each, environ)
        ),
    )


def _has_pytest(python: str, environ: Mapping[str, str]) -> bool:
    """Ask a Python whether it can import pytest; it takes as long as to start it (20 ms)."""
    from patchgate.process.child import run

    try:
        # With -c the working directory is the first place for modules: it must not be the repository.
        return run([python, "-c", _ASK], cwd=os.sep, env=environ, seconds=_SECONDS).code == 0
    except PatchgateError:
        return False


def validate_environment(
    environ: Mapping[str, str],
    settings: EnvironmentSettings,
    root: str | None,
    *,
    test_commands: Iterable[Sequence[str]] = (),
) -> None:
    """Check once, before anything is started, that everything is there that the policy requires.

    Args:
        environ: the variables of the caller.
        settings: what the policy says.
        root: the working tree, an absolute path; None if there is none.
        test_commands: those of the components whose tests will run.

    Raises:
        UndecidedError: something is missing: what, where it was looked for, and what to do.
    """
    searched = command_environment(shared_environment(environ, settings, root), {}, NO_TREE)
    places = find_programs(searched, settings, root, test_commands=test_commands)
    if missing := places.missing:
        raise UndecidedError(
            f"the environment of the policy is not complete: {'; '.join(missing)}",
            f"{suggest(places, environ, root)}; git patchgate doctor compares it with your shell",
        )


def prepare_environment(
    environ: Mapping[str, str],
    settings: EnvironmentSettings,
    root: str | None,
    *,
    test_commands: Iterable[Sequence[str]] = (),
) -> Mapping[str, str]:
    """Make the environment that all programs of a policy share, and check that it is complete.

    Without `[environment]` it is the caller's, unchecked: a program that is missing is then reported by the
    command that needs it.

    Raises:
        UndecidedError: something is missing; see `validate_environment`.
    """
    if settings == EnvironmentSettings():
        return environ
    validate_environment(environ, settings, root, test_commands=test_commands)
    return shared_environment(environ, settings, root)


def suggest(places: ProgramPlaces, environ: Mapping[str, str], root: str | None) -> str:
    """Write how to make an environment complete: the folder that has a missing program, or to install it.

    Args:
        places: what is missing.
        environ: the variables of the caller, which may name folders that PATH does not have.
        root: the working tree, an absolute path; None if there is none.
    """
    lines = []
    if places.python is None:
        other = next((name for name in _PYTHONS if find_in(places.path, name)), None)
        fix = f'set [environment] python_path = "{other}"' if other else "install Python"
        lines.append(f"{fix}, or write the path of another one as python_path")
    folders = dict.fromkeys(_other_folders(environ, root))
    left = list(places.missing_tools)
    for folder in folders:
        names = [name for name in left if is_program(os.path.join(folder, name))]
        if names:
            left = [name for name in left if name not in names]
            shown = ", ".join(printable(name, 60) for name in names)
            have = "is" if len(names) == 1 else "are"
            lines.append(f"{shown} {have} in {printable(folder)}: add it to [environment] extra_path_dirs")
    if left:
        shown = ", ".join(printable(name, 60) for name in left)
        lines.append(f"install {shown}, or add the folder to [environment] extra_path_dirs")
    if places.lacks_pytest:
        lines.append("install pytest there, or set [environment] python_path to a Python that has it")
    return "; ".join(lines)


def _other_folders(environ: Mapping[str, str], root: str | None) -> Iterator[str]:
    # With `inherit_path = false` the caller's own folders are the best guess.
    yield from (each for each in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(each))
    for base, folders in (
        (environ.get("VIRTUAL_ENV"), ("bin",)),
        (root, _OF_ROOT),
        (environ.get("HOME"), _OF_HOME),
        (os.sep, _ELSEWHERE),
    ):
        if base and os.path.isabs(base):
            yield from (os.path.join(base, folder) for folder in folders)
