"""Commands of a policy, made in tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from patchgate.check.change_commands import CommandOptions, run_on_staged
from patchgate.check.command_changes import untrusted_commands
from patchgate.check.policy_lookup import trusted_options
from patchgate.commands.command_answer import CommandAnswer
from patchgate.commands.trusted_commands import allow
from patchgate.git.repository import Repository, open_repository
from patchgate.policy.command_settings import AnalysisFormat, CommandSettings
from tests.world import Answer, Content, Repo


def analysis(
    command: tuple[str, ...],
    output: AnalysisFormat = "sarif",
    timeout: float = 600,
    env: Mapping[str, str] | None = None,
    required_tools: tuple[str, ...] = (),
) -> CommandSettings:
    """Make a command of `verify`."""
    return CommandSettings(
        kind="lint",
        command=command,
        timeout=timeout,
        env=dict(env or {}),
        required_tools=required_tools,
        output=output,
        on=("verify",),
    )


class Tools(Repo):
    """A repository whose policy has commands, with what tells how often each was started."""

    @classmethod
    def with_commands(cls, folder: Path, text: str, files: Mapping[str, Content] | None = None) -> Tools:
        """Make one whose first commit has this policy; its commands are allowed on this machine."""
        repo = Repo.create(folder)
        tools = cls(repo.path, {**repo.env, "RUNS": str(folder / "runs")})
        tools.commit({"patchgate.toml": text, **(files or {})})
        tools.allow()
        return tools

    def opened(self) -> Repository:
        return open_repository(self.env, str(self.path))

    def allow(self) -> None:
        """Allow every command of HEAD's policy on this machine."""
        repository = self.opened()
        _, wanted = untrusted_commands(repository, ())
        allow(repository.common_dir, [text for text, _ in wanted.values()])

    @property
    def runs(self) -> list[str]:
        """What the tools wrote to `$RUNS`, a line for each start."""
        place = Path(self.env["RUNS"])
        return place.read_text(encoding="utf-8").splitlines() if place.exists() else []

    def pre_commit(self, only: str | None = None) -> Answer:
        """Answer the hook about what is staged; `only` is what PATCHGATE_SKIP_ONLY says."""
        skipped = {} if only is None else {"PATCHGATE_SKIP_ONLY": only}
        return self.cli("hook", "pre-commit", cwd=None, **skipped)

    def answers(self, *, trusts: bool = True, left_out: tuple[str, ...] = ()) -> dict[str, CommandAnswer]:
        """Run the commands of a commit on what is staged; return their answers by name."""
        repository = self.opened()
        options = CommandOptions(
            environ=self.env,
            cache=str(self.path.parent / "cache"),
            report_progress=lambda what, seconds: None,
            left_out=left_out,
            needs_trust=not trusts,
        )
        found = run_on_staged(repository, options, trusted_options(repository))
        return {each.name: each for each in found.answers}


def tool(
    name: str, script: str, *arguments: str, kind: str = "lint", on: str = '["commit"]', more: str = ""
) -> str:
    """Write a command that is a shell script; `{files}` are its arguments unless others are given."""
    words = json.dumps(["sh", "-c", script, name, *(arguments or ("{files}",))])
    return f'[commands.{name}]\nkind = "{kind}"\ncommand = {words}\non = {on}\n{more}\n'
