"""Open a repository: the one function that finds it, in any environment that git sets.

Finds the git directory, the working tree and the index in use. Git does the search, so its ownership check
(`safe.directory`) applies; afterwards every child gets these paths explicitly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping, Sequence

from patchgate.errors import UndecidedError, UsageError
from patchgate.git.pinned import FIXED, PINNED
from patchgate.git.quoting import printable
from patchgate.process.child import DEFAULT_MEMORY, DEFAULT_OUTPUT, DEFAULT_SECONDS, Child, Completed, run
from patchgate.process.child_environment import allowed_environment
from patchgate.process.cpu_limit import CpuBudget
from patchgate.values import dataclass, field

TRANSACTIONS = "patchgate/transactions"


def has_pending_transactions(common_dir: str) -> bool:
    """Return whether a transaction is running or was interrupted."""
    try:
        return bool(os.listdir(os.path.join(common_dir, TRANSACTIONS)))
    except OSError:
        return False


MINIMUM_GIT = (2, 39, 2)
# Git 2.43 reads attributes from this tree instead of any file; up to 2.45 from HEAD's in a bare repository.
_EMPTY_TREE = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
BIG_FILE = 32 << 20
QUARANTINE = "GIT_QUARANTINE_PATH"
ANY_CODE = range(256)
"""Every exit code; an end by a signal has none."""
FETCH_MISSING = (
    "git fetch --refetch --no-filter brings what a partial clone left out, git fetch --unshallow what a "
    "shallow one did"
)
_QUARANTINE = (QUARANTINE, "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")


@dataclass(frozen=True, slots=True)
class Repository:
    """An opened repository; all paths are absolute.

    `work_tree` is None in a bare repository, `prefix` is the folder inside it where the user is,
    `limits` says in sentences why libgit2 could not read it. `config_warnings` are the warnings about
    its policies when the command ends, each once: values that cannot be used as they are; `config_notes` are
    about what is written in an old form. `namespace` is the one that a push goes into (gitnamespaces); no
    child gets it. `expression_time` is the processor time that the regular expressions of its policies have.
    `policy_files` says of each file that was read, by its name and object id, whether it says anything about
    the rules, and `policy_keys` which files of a tree do. `contract_facts` has what contracts say, by their
    ids, and `histories` what some known commits reach, by what git was asked. `trusts_caches` is false where
    others may have written to the git directory, as in a clone that a CI machine keeps.
    """

    git_dir: str
    common_dir: str
    work_tree: str | None
    object_format: str
    prefix: str
    index_file: str
    environment: Mapping[str, str]
    limits: tuple[str, ...] = ()
    _shallow: frozenset[str] = field(default=frozenset())
    namespace: str = ""
    config_warnings: list[str] = field(default_factory=list, compare=False, repr=False)
    config_notes: list[str] = field(default_factory=list, compare=False, repr=False)
    expression_time: CpuBudget = field(default_factory=CpuBudget, compare=False, repr=False)
    policy_files: dict[tuple[bytes, str], bool] = field(default_factory=dict, compare=False, repr=False)
    policy_keys: dict[str, tuple[str | None, str | None]] = field(
        default_factory=dict, compare=False, repr=False
    )
    histories: dict[bytes, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)
    contract_facts: dict[str, object] = field(default_factory=dict, compare=False, repr=False)
    trusts_caches: bool = True

    @property
    def zero_oid(self) -> str:
        """The object id of nothing, in the length of this repository's ids."""
        return "0" * (64 if self.object_format == "sha256" else 40)

    def is_oid(self, word: bytes) -> bool:
        """Return whether a word is a whole object id, as git writes them."""
        return len(word) == len(self.zero_oid) and not word.strip(b"0123456789abcdef")

    @property
    def shallow(self) -> frozenset[str]:
        """The commits whose parents were left out of this clone."""
        return self._shallow

    @property
    def is_receiving(self) -> bool:
        """Return whether new objects are in quarantine: git updates no ref, and nothing may be written."""
        return QUARANTINE in self.environment

    @property
    def has_limits(self) -> bool:
        """Return whether changes may have been made to take long: a server and CI judge those of anybody."""
        return self.is_receiving or not self.trusts_caches

    def argv(self, arguments: Sequence[str], *, in_work_tree: bool = False) -> list[str]:
        """Build the whole command line of a git child.

        Outside the working tree no tracked attribute counts, and no `core.worktree`: git would change to that
        folder, read its attributes, and take paths as relative to the git directory (measured).
        """
        settings = list(PINNED)
        if in_work_tree:
            location_option = "--work-tree=" + (self.work_tree or "")
        else:
            location_option = (
                "--bare" if self.work_tree is None else "--work-tree=" + self.git_dir + "/no-work-tree"
            )
            settings.append("attr.tree=" + _EMPTY_TREE[self.object_format])
        pinned = [part for setting in settings for part in ("-c", setting)]
        return ["git", "--git-dir=" + self.git_dir, location_option, *pinned, *arguments]

    def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        variables: Mapping[str, str] | None = None,
        in_work_tree: bool = False,
        memory: int = DEFAULT_MEMORY,
        seconds: float = DEFAULT_SECONDS,
        max_output: int = DEFAULT_OUTPUT,
        answers: Container[int] = (0,),
    ) -> Completed:
        """Run git plumbing to its end; `variables` are added to its environment.

        Args:
            max_output: the most bytes that it may write.
            answers: the exit codes that answer the question; any other is an error.

        Raises:
            UndecidedError: git could not be started, took too long, was killed, wrote too much
                (`OutputLimitError`), or did not answer; the message has git's last line.
        """
        done = run(
            self.argv(arguments, in_work_tree=in_work_tree),
            cwd=self.work_tree if in_work_tree else self.git_dir,
            env={**self.environment, **(variables or {})},
            stdin=stdin,
            seconds=seconds,
            max_output=max_output,
            memory=memory,
        )
        if done.code not in answers:
            raise failed(_command(arguments), done)
        return done

    def output(
        self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> bytes:
        """Run git plumbing that must succeed, and return its output.

        Raises:
            UndecidedError: as in `git`.
        """
        return self.git(*arguments, stdin=stdin, variables=variables).out

    def child(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        variables: Mapping[str, str] | None = None,
        memory: int = DEFAULT_MEMORY,
        seconds: float = DEFAULT_SECONDS,
    ) -> Child:
        """Start git plumbing as a `Child`; use it as a context manager."""
        env = {**self.environment, **(variables or {})}
        argv = self.argv(arguments)
        return Child(argv, cwd=self.git_dir, env=env, stdin=stdin, memory=memory, seconds=seconds)


class MemoryLimitError(UndecidedError):
    """A git child exceeded its memory limit."""


def _command(arguments: Sequence[str]) -> str:
    """Find the name of git's command after its options."""
    words = iter(arguments)
    for word in words:
        if word in {"-c", "-C"}:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return "command"


def failed(command: str, done: Completed) -> UndecidedError:
    """Return the error of a failed git command, with git's last line."""
    lines = [line for line in done.err.split(b"\n") if line.strip()]
    ended = f"exit code {done.code}" if done.code >= 0 else f"it was ended by signal {-done.code}"
    said = printable(lines[-1]) if lines else ended
    if b"ut of memory" in done.err:
        return MemoryLimitError(
            f"git {command} needs more memory than patchgate allows: {said}", "split the change"
        )
    return UndecidedError(f"git {command} failed: {said}", f"run git fsck; {FETCH_MISSING}")


def finish(child: Child, command: str) -> None:
    """Wait for the end of a child; only now its output counts as an answer.

    Raises:
        UndecidedError: git failed, or exceeded its time limit.
    """
    done = child.finish()
    if done.code != 0:
        raise failed(command, done)


# In this order: only the last may contain a line feed.
_ASKED = (
    "--absolute-git-dir",
    "--git-common-dir",
    "--is-bare-repository",
    "--show-object-format",
    "--show-prefix",
    "--show-toplevel",
)


def open_repository(environ: Mapping[str, str], directory: str) -> Repository:
    """Find and open the repository that git itself would use in `directory` with `environ`.

    Args:
        environ: the caller's environment; `GIT_DIR`, `GIT_WORK_TREE`, `GIT_COMMON_DIR` and
            `GIT_INDEX_FILE` count as they do for git; other variables of git are ignored.
        directory: where the user is.

    Raises:
        UsageError: there is no repository, or no working tree in it.
        UndecidedError: git is missing or too old, or refuses the repository (ownership, unknown format).
    """
    if not os.path.isdir(directory):
        raise UsageError(
            f"the folder {printable(directory)} does not exist", "name an existing folder with -C"
        )
    base = allowed_environment(environ) | FIXED
    variables = {
        name: environ[name] for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR") if environ.get(name)
    }
    found = run(["git", "rev-parse", *_ASKED], cwd=directory, env={**base, **variables})
    lines = found.out.decode("utf-8", "surrogateescape").split("\n")
    work_tree_said = "\n".join(lines[5:-1])
    if len(lines) > 5 and (
        lines[2] not in {"true", "false"} or (found.code == 0 and not os.path.isabs(work_tree_said))
    ):
        raise UndecidedError("the path of this repository contains a line feed", "rename that folder")
    # In a bare repository only the last question has no answer.
    is_answered = found.code == 0 or (found.code > 0 and lines[2:3] == ["true"] and b"work tree" in found.err)
    if len(lines) < 5 or not is_answered:
        raise _not_opened(found)
    if (version := git_version(base)) < MINIMUM_GIT:
        text = ".".join(str(part) for part in version)
        raise UndecidedError(f"git {text} is too old", "install git 2.39.2 or newer")
    git_dir, bare, object_format, prefix = lines[0], lines[2] == "true", lines[3], lines[4]
    common_dir = os.path.normpath(os.path.join(directory, lines[1]))
    work_tree = None if bare or found.code != 0 else work_tree_said
    if QUARANTINE in environ:
        base |= {name: environ[name] for name in _QUARANTINE if name in environ}
    if "GIT_DIR" not in variables:
        _require_not_tracked(git_dir, directory, base)
    index_file = os.path.join(work_tree or directory, environ.get("GIT_INDEX_FILE") or git_dir + "/index")
    base["GIT_INDEX_FILE"] = index_file
    if "GIT_COMMON_DIR" in variables:
        base["GIT_COMMON_DIR"] = common_dir
    return Repository(
        git_dir=git_dir,
        common_dir=common_dir,
        work_tree=work_tree,
        object_format=object_format,
        prefix=prefix.rstrip("/"),
        index_file=index_file,
        environment=base,
        limits=_limits(git_dir, common_dir, object_format),
        _shallow=_read_shallow(common_dir),
        namespace=environ.get("GIT_NAMESPACE", ""),
    )


def _require_not_tracked(git_dir: str, directory: str, env: Mapping[str, str]) -> None:
    """Refuse a bare repository that is made of tracked files of the repository around it.

    Git takes a folder with `HEAD`, `objects` and `refs` for a repository, so a commit could bring one, whose
    refs say what is judged in that folder (the case for which git has `safe.bareRepository`).
    """
    inner, above = os.path.realpath(git_dir), os.path.realpath(directory)
    if os.path.commonpath([inner, above]) != inner:
        return
    above = os.path.dirname(inner)
    while True:
        if os.path.lexists(os.path.join(above, ".git")):
            named = f":(icase,literal){os.path.relpath(inner, above)}"
            asked = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--", named]
            found = run(asked, cwd=above, env=env)
            # Where git refuses another user's repository, nobody has checked that out for this user.
            if found.out or (found.code != 0 and b"dubious ownership" not in found.err):
                raise UsageError(
                    f"{printable(os.path.relpath(inner, above))} looks like a bare repository, but its files "
                    f"are tracked by the repository around it",
                    "run the command in the root of that repository, or name a repository with -C",
                )
        if above == os.path.dirname(above):
            return
        above = os.path.dirname(above)


def _not_opened(found: Completed) -> UsageError | UndecidedError:
    said = found.err.decode("utf-8", "replace").strip().split("\n")
    text = next((line for line in said if line.startswith("fatal:")), said[0]).removeprefix("fatal: ")
    if "not a git repository" in text:
        return UsageError("not a git repository", "run this inside a repository, or name one with -C DIR")
    if "dubious ownership" in text:
        return UndecidedError(
            "git refuses this repository: it belongs to another user",
            "if you trust it: git config --global --add safe.directory PATH",
        )
    if "work tree" in text:
        return UsageError("this is a git directory, not a working tree", "go to the working tree")
    if not text:
        return failed("rev-parse", found)
    return UndecidedError(f"git cannot open this repository: {printable(text)}", "run git status to see why")


# By PATH. One process opens several repositories: worktrees, scratch folders, the folder of a remote.
known_versions: dict[str, tuple[int, ...]] = {}


def git_version(environment: Mapping[str, str]) -> tuple[int, ...]:
    """Ask the git of an environment for its version, once in a process for each PATH.

    Raises:
        UndecidedError: git could not be started, or printed no version.
    """
    path = environment.get("PATH", "")
    if path in known_versions:
        return known_versions[path]
    done = run(["git", "version"], cwd=None, env=environment)
    found = re.search(rb"(\d+)\.(\d+)(?:\.(\d+))?", done.out if done.code == 0 else b"")
    if found is None:
        raise UndecidedError("git did not print its version", "install git 2.39.2 or newer")
    known_versions[path] = tuple(int(part or 0) for part in found.groups())
    return known_versions[path]


def _limits(git_dir: str, common_dir: str, object_format: str) -> tuple[str, ...]:
    """List why libgit2 1.9 could not read this repository (libgit2#6132, #7260, pygit2#1411)."""
    found: list[str] = []
    if object_format != "sha1":
        found.append(f"object format {object_format}: libgit2 cannot read it, git's plumbing was used")
    if os.path.isdir(os.path.join(common_dir, "reftable")):
        found.append("reftable refs: libgit2 cannot read them, git's plumbing was used")
    try:
        if any(name.startswith("sharedindex.") for name in os.listdir(git_dir)):
            found.append("split index: libgit2 cannot read it, git's plumbing was used")
    except OSError:
        pass
    return tuple(found)


def _read_shallow(common_dir: str) -> frozenset[str]:
    try:
        with open(os.path.join(common_dir, "shallow"), encoding="ascii", errors="replace") as file:
            return frozenset(file.read().split())
    except FileNotFoundError:
        return frozenset()
