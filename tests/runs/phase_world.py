"""One component in a repository, and an author whose answers a test writes beforehand.

The author is a shell script outside the repository: it stores each brief, and prints the answer of that
number. The tests of the component are a shell script too: they pass when the implementation says so.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from patchgate.git.repository import Repository
from patchgate.ledger.ledger import Ledger
from patchgate.runs.phase_task import PhaseResult, PhaseTask, WorkEnvironment
from patchgate.runs.phase_work import perform
from patchgate.runs.phases import Phase
from tests.component_world import contract, declared, opened
from tests.world import Content, Repo

CONTRACT = "contracts/calc/interface.json"
TESTS = "tests/calc/check.sh"
CODE = "src/calc/code.txt"
BASELINE = ".patchgate/baselines/calc.json"
CHECK = "grep -q right src/calc/code.txt || { echo the code is not right; exit 1; }\n"


def new_file(path: str, text: str) -> bytes:
    """Write a patch that adds a file."""
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1,{len(lines)} @@\n{body}"
    ).encode()


def one_line(path: str, old: str, new: str) -> bytes:
    """Write a patch that changes a file of one line."""
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n".encode()


WRONG = new_file(CODE, "wrong\n")
RIGHT = new_file(CODE, "right\n")


class Desk:
    """A repository with the component `calc`, and what its author finds and leaves.

    `answers` are printed one after another; where there are no more, the author prints nothing.
    """

    def __init__(
        self,
        folder: Path,
        *answers: bytes,
        phase: Phase = Phase.IMPLEMENTATION,
        script: str | None = None,
        files: Mapping[str, Content] | None = None,
        more: str = "",
        **keys: Any,
    ) -> None:
        self.folder = folder
        self.phase = phase
        self.briefs_folder = folder / "briefs"
        self.answers_folder = folder / "answers"
        self.briefs_folder.mkdir()
        self.answers_folder.mkdir()
        for number, answer in enumerate(answers):
            (self.answers_folder / str(number)).write_bytes(answer)
        self.repo = Repo.create(folder)
        self.repo.policy(policy(self.author(script or ""), phase, more=more, **keys))
        self.repo.commit(
            {CONTRACT: contract("calc"), TESTS: CHECK, "README.md": "hello\n"} if files is None else files
        )

    def author(self, script: str) -> list[str]:
        """Return the command of the author; `script` runs before it answers."""
        folder, answers = shlex.quote(str(self.briefs_folder)), shlex.quote(str(self.answers_folder))
        lines = [
            f"n=$(ls {folder} | wc -l); cat > {folder}/$n",
            script,
            f"cat {answers}/$n 2>/dev/null || true",
        ]
        return ["sh", "-c", "\n".join(filter(None, lines))]

    @property
    def briefs(self) -> list[str]:
        """What the author was asked, in order."""
        return [
            (self.briefs_folder / str(n)).read_text() for n in range(len(list(self.briefs_folder.iterdir())))
        ]

    @property
    def repository(self) -> Repository:
        """The repository as the product opens it."""
        return opened(self.repo)

    @property
    def staged(self) -> list[str]:
        """The files of the index that differ from HEAD."""
        return self.repo.ask("diff", "--cached", "--name-only").split()

    @property
    def intents(self) -> list[str]:
        """The ids of the stored intents."""
        folder = Path(self.repo.common_dir, "patchgate", "intents")
        return sorted(place.stem for place in folder.glob("*.json"))

    def task(self, **other: Any) -> PhaseTask:
        """Describe the work that the tests ask for."""
        plain = PhaseTask("r-1", "calc", self.phase, seconds=60, stall=60)
        return replace(plain, **other)

    def environment(self, is_wanted: Callable[[], bool] = lambda: True, **env: str) -> WorkEnvironment:
        """Give what the work needs from outside."""
        return WorkEnvironment(self.repo.env | env, str(self.folder / "cache"), is_wanted=is_wanted)

    def perform(
        self,
        *,
        is_wanted: Callable[[], bool] = lambda: True,
        most_answer: int = 1 << 20,
        env: dict[str, str] | None = None,
        **other: Any,
    ) -> PhaseResult:
        """Do the work, as the process of a run does."""
        place = self.environment(is_wanted, **(env or {}))
        return perform(self.repository, self.task(**other), place, most_answer=most_answer)

    def tree(self) -> str:
        """Return everything that a second try might change: index, files, the number of events."""
        events = len(list(Ledger(self.repo.common_dir).events()))
        status = self.repo.ask("status", "--porcelain=v2", "--untracked-files=all")
        return f"{self.repo.ask('write-tree')} {status} {events}"


def policy(author: list[str], phase: Phase, *, more: str = "", **keys: Any) -> str:
    """Write a policy with the component and its author."""
    role = {Phase.CONTRACT: "contract_author", Phase.TESTS: "test_author"}.get(phase, "code_author")
    lines = [
        declared("calc", **{"test_command": ["sh", TESTS], **keys}),
        "[commands.writer]",
        'kind = "author"',
        f'role = "{role}"',
        f'phase = "{phase.value}"',
        f"command = {json.dumps(author)}",
        more,
    ]
    return "\n".join(lines) + "\n"
