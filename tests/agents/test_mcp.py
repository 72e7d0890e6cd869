"""The MCP server, driven by the SDK's client: in process by both protocols, and over stdio."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    Root,
    TextResourceContents,
)
from pydantic import FileUrl

import patchgate.agents.mcp.server as mcp_server
from patchgate.agents.mcp.call import answer, read_call
from patchgate.agents.mcp.parameters import MOST_PATCH
from patchgate.agents.mcp.served_place import MOST_ROOTS, ServerPlace, require_mcp
from patchgate.agents.mcp.server import build_server
from patchgate.errors import PatchgateError, UsageError
from tests.component_world import contract, declared, opened
from tests.runs.phase_world import CHECK, CODE, CONTRACT, TESTS, new_file, one_line
from tests.test_floor_plan import imports
from tests.world import EXECUTABLE, Repo

pytestmark = pytest.mark.turns(3)

PATCH = one_line("README.md", "hello", "goodbye").decode()
DENIED = new_file("runs/record", "1\n").decode()
NO_DIGEST = "sha256:" + "0" * 64
MODES = ["legacy", "2026-07-28"]
READING = {"validate", "check", "explain", "verify", "brief", "status"}
CHANGING = {"declare_intent", "apply", "resume"}


def shop(folder: Path) -> Repo:
    """Make a repository with the component `calc`, whose tests fail until its code is right."""
    repo = Repo.create(folder)
    metrics = json.dumps(["sh", "-c", "echo '{\"metrics\": []}'"])
    repo.policy(
        '[policy]\ndeny_prefixes = ["runs"]\n'
        + declared("calc", test_command=["sh", TESTS])
        + f'\n[analyses.size]\ncommand = {metrics}\nformat = "metrics"\n'
    )
    repo.commit({CONTRACT: contract("calc"), TESTS: CHECK, "README.md": "hello\n"})
    return repo


@dataclass
class Person:
    """Who is asked before a change, and what they were asked."""

    action: str = "accept"
    confirm: bool = True
    asked: list[str] = field(default_factory=list)

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        content = {"confirm": self.confirm} if self.action == "accept" else None
        return ElicitResult(action=self.action, content=content)


@dataclass
class Session:
    """A client at its server."""

    client: Client

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, which must answer."""
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def refusal(self, name: str, **arguments: Any) -> str:
        """Call a tool, which must refuse; return what it says, in one printable line."""
        result: CallToolResult = await self.client.call_tool(name, arguments)
        assert result.is_error, result.structured_content
        (content,) = result.content
        assert content.type == "text"
        assert content.text.isprintable()
        assert len(content.text) < 2000
        return content.text

    async def read(self, name: str) -> Any:
        """Read a resource of JSON."""
        (content,) = (await self.client.read_resource(f"patchgate://{name}")).contents
        assert isinstance(content, TextResourceContents)
        return json.loads(content.text)


Act = Callable[[Session], Awaitable[None]]


def serve(
    repo: Repo,
    act: Act,
    *,
    mode: str = "2026-07-28",
    allows_changes: bool = False,
    person: Person | None = None,
    directory: Path | None = None,
    roots: Sequence[str] | None = None,
    is_named: bool = False,
) -> None:
    """Serve a client in this process; `act` is what it does."""

    async def list_roots(context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in roots or ()])

    async def run() -> None:
        place = ServerPlace(repo.env, str(directory or repo.path), is_named=is_named)
        client = Client(
            build_server(place, allows_changes=allows_changes),
            mode=mode,
            elicitation_callback=person,
            list_roots_callback=None if roots is None else list_roots,
            client_info=Implementation(name="helper\x1b[2J", version="7"),
        )
        await within(client, act)

    anyio.run(run)


async def within(client: AbstractAsyncContextManager[Client], act: Act) -> None:
    async with client as connected:
        with anyio.fail_after(300):
            await act(Session(connected))


def asked(repo: Repo) -> list[dict[str, Any]]:
    """List what the ledger says of changes that clients asked for."""
    lines = repo.cli("log", "--format", "json", "--kind", "asked").out.splitlines()
    return [json.loads(line) for line in lines]


# ---- what it offers --------------------------------------------------------------------------------------


def test_every_tool_has_all_four_hints_and_a_typed_result(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        tools = {each.name: each for each in (await session.client.list_tools()).tools}
        assert set(tools) == READING | CHANGING
        for name, tool in tools.items():
            assert tool.annotations is not None
            hints = tool.annotations.model_dump(exclude={"title"})
            assert None not in hints.values(), name
            assert hints["read_only_hint"] is (name in READING)
            assert tool.output_schema is not None, name
            assert "text" in tool.output_schema["properties"], name
            assert {"ctx", "choice"}.isdisjoint(tool.input_schema["properties"]), name

    serve(shop(tmp_path), act, allows_changes=True)


def test_changes_are_only_there_when_they_are_allowed(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        assert {each.name for each in (await session.client.list_tools()).tools} == READING
        sent = {"patch": PATCH, "digest": NO_DIGEST, "confirm": True}
        assert "there is no tool" in await session.refusal("apply", **sent)

    repo = shop(tmp_path)
    serve(repo, act)
    assert (repo.path / "README.md").read_text() == "hello\n"


def test_resources_are_read_and_change_nothing(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    repo.cli("intent", "declare", "-m", "greet shorter", "--allow", "README.md", "--lazy")
    (intent,) = json.loads(repo.cli("intent", "list", "--format", "json").out)["intents"]
    before = repo.ask("status", "--porcelain"), repo.ask("for-each-ref"), len(asked(repo))

    async def act(session: Session) -> None:
        listed = {str(each.uri) for each in (await session.client.list_resources()).resources}
        names = ("status", "policy", "contracts", "budget", "retrospective", "rules")
        assert listed == {f"patchgate://{name}" for name in names}
        templates = (await session.client.list_resource_templates()).resource_templates
        assert {each.uri_template for each in templates} == {
            "patchgate://contract/{id}",
            "patchgate://intent/{id}",
        }
        assert (await session.read("status"))["schema"] == "patchgate.status/1"
        keys = {each["key"]: each["value"] for each in (await session.read("policy"))["keys"]}
        assert keys["policy.deny_prefixes"] == ["runs"]
        assert [each["id"] for each in (await session.read("contracts"))["components"]] == ["calc"]
        assert await session.read("contract/calc") == json.loads(contract("calc"))
        (shown,) = (await session.read(f"intent/{intent['id']}"))["intents"]
        assert shown["reason"] == "greet shorter"
        budget = await session.read("budget")
        assert (budget["change"]["max_files"], budget["run"]) == (5, None)
        assert "deny-prefix" in [each["id"] for each in (await session.read("rules"))["rules"]]
        for name in ("retrospective", "contract/none", "intent/i-0123456789", "nothing"):
            with pytest.raises(MCPError):
                await session.read(name)

    serve(repo, act)
    assert (repo.ask("status", "--porcelain"), repo.ask("for-each-ref"), len(asked(repo))) == before


def test_the_tools_answer_as_the_commands_do(tmp_path: Path) -> None:
    repo = shop(tmp_path)

    async def act(session: Session) -> None:
        good, bad = await session.tool("check", patch=PATCH), await session.tool("check", patch=DENIED)
        assert (good["verdict"], good["findings"]) == ("accepted", [])
        assert (bad["verdict"], bad["digest"]) == ("rejected", None)
        (finding,) = bad["findings"]
        assert (finding["rule"], finding["place"]) == ("deny-prefix", "runs/record")
        assert "error[deny-prefix] runs/record" in bad["text"]
        repo.stage({f"new-{number}.txt": "x\n" for number in range(6)})
        assert [each["rule"] for each in (await session.tool("check"))["findings"]] == ["max-files"]
        repo.git("reset", "-q", "--hard")
        assert (await session.tool("check", source="worktree"))["verdict"] == "accepted"
        assert (await session.tool("validate"))["contracts"] == 1
        assert "deny-prefix" in (await session.tool("explain", rule="deny-prefix"))["text"]
        assert "deny-prefix" in (await session.tool("explain", path="runs/record"))["text"]
        assert (await session.tool("verify"))["verdict"] == "accepted"
        brief = await session.tool("brief", names=["calc"], max_tokens=100)
        assert contract("calc").rstrip() in brief["text"]
        assert brief["left_out"]
        assert (await session.tool("status"))["runs"] == []

    serve(repo, act)


def test_only_the_server_imports_the_sdk_and_only_its_command_imports_the_server() -> None:
    heavy = {each.module for each in imports() if each.names.split(".")[0] in {"mcp", "mcp_types", "anyio"}}
    assert heavy == {"patchgate.agents.mcp.server", "patchgate.agents.mcp.wire"}
    users = {each.module for each in imports() if each.names.startswith("patchgate.agents.mcp.server.")}
    assert users == {"patchgate.cli.agent"}
    users = {each.module for each in imports() if each.names.startswith("patchgate.agents.mcp.wire.")}
    assert users == {"patchgate.agents.mcp.server"}


# ---- changes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_change_is_made_after_a_person_was_asked_and_is_in_the_ledger(tmp_path: Path, mode: str) -> None:
    repo, person = shop(tmp_path), Person()

    async def act(session: Session) -> None:
        digest = (await session.tool("check", patch=PATCH))["digest"]
        done = await session.tool("apply", patch=PATCH, digest=digest)
        assert (done["verdict"], done["applied"]) == ("accepted", True)

    serve(repo, act, mode=mode, allows_changes=True, person=person)
    assert (repo.path / "README.md").read_text() == "goodbye\n"
    assert len(person.asked) == 1
    assert "README.md" in person.asked[0]
    (event,) = asked(repo)
    assert (event["tool"], event["client"]) == ("apply", "helper\\x1b[2J 7")
    (attempt,) = json.loads(repo.cli("attempts", "list", "--format", "json").out)["attempts"]
    assert event["patch_sha256"] == attempt["patch_sha256"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "person", [Person("decline"), Person("cancel"), Person("accept", confirm=False)], ids=str
)
def test_nothing_is_done_where_the_person_does_not_confirm(tmp_path: Path, mode: str, person: Person) -> None:
    repo = shop(tmp_path)

    async def act(session: Session) -> None:
        digest = (await session.tool("check", patch=PATCH))["digest"]
        # What the model says does not count where a person can be asked.
        said = await session.refusal("apply", patch=PATCH, digest=digest, confirm=True)
        assert "nothing was done" in said

    serve(repo, act, mode=mode, allows_changes=True, person=person)
    assert (repo.path / "README.md").read_text() == "hello\n"
    assert asked(repo) == []


def test_where_the_client_cannot_ask_confirm_must_be_true(tmp_path: Path) -> None:
    repo = shop(tmp_path)

    async def act(session: Session) -> None:
        digest = (await session.tool("check", patch=PATCH))["digest"]
        assert "confirm = true" in await session.refusal("apply", patch=PATCH, digest=digest)
        assert asked(repo) == []
        assert (await session.tool("apply", patch=PATCH, digest=digest, confirm=True))["applied"]

    serve(repo, act, allows_changes=True)


def test_what_is_applied_is_what_was_checked(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    other = one_line("README.md", "hello", "hello again").decode()

    async def act(session: Session) -> None:
        digest = (await session.tool("check", patch=PATCH))["digest"]
        for sent in ({"patch": other, "digest": digest}, {"patch": PATCH, "digest": NO_DIGEST}):
            assert "call check" in await session.refusal("apply", confirm=True, **sent)
        assert "call check" in await session.refusal("apply", patch=DENIED, digest=digest, confirm=True)
        repo.commit({"patchgate.toml": '[policy]\ndeny_prefixes = ["docs"]\n'})
        assert "call check" in await session.refusal("apply", patch=PATCH, digest=digest, confirm=True)

    serve(repo, act, allows_changes=True)
    assert (repo.path / "README.md").read_text() == "hello\n"
    assert asked(repo) == []


INPUTS = {
    "envelope": "*** Begin Patch\n*** Update File: README.md\n@@\n-hello\n+goodbye\n*** End Patch\n",
    # Sent as text, though it is JSON.
    "edits": json.dumps({"file_path": "README.md", "old_string": "hello", "new_string": "goodbye"}),
}


@pytest.mark.parametrize("name", INPUTS)
def test_the_formats_of_the_policy_are_read_and_applied(tmp_path: Path, name: str) -> None:
    repo = shop(tmp_path)
    policy = (repo.path / "patchgate.toml").read_text()
    repo.policy(f'{policy}\n[apply]\ninputs = ["diff", "{name}"]\n')

    async def act(session: Session) -> None:
        sent = {"patch": INPUTS[name], "input": name}
        digest = (await session.tool("check", **sent))["digest"]
        # The digest is of what was read, in the format in which it was.
        for other in ({**sent, "input": "diff"}, {"patch": PATCH}):
            await session.refusal("apply", digest=digest, confirm=True, **other)
        assert (await session.tool("apply", digest=digest, confirm=True, **sent))["applied"]

    serve(repo, act, allows_changes=True)
    assert (repo.path / "README.md").read_text() == "goodbye\n"


def test_a_format_that_the_policy_does_not_list_is_refused(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        said = await session.refusal("check", patch=INPUTS["envelope"], input="envelope")
        assert "the policy does not allow --input envelope" in said
        assert "input" in await session.refusal("check", patch=PATCH, input="other")

    serve(shop(tmp_path), act)


def test_an_intent_is_declared_on_the_state_that_was_checked(tmp_path: Path) -> None:
    repo = shop(tmp_path)

    async def act(session: Session) -> None:
        wish = {"reason": "greet shorter", "allow": ["README.md"], "confirm": True}
        digest = (await session.tool("check", source="worktree"))["digest"]
        repo.write("later.txt", "x\n")
        repo.git("add", "later.txt")
        assert "call check" in await session.refusal("declare_intent", digest=digest, **wish)
        digest = (await session.tool("check"))["digest"]
        done = await session.tool("declare_intent", digest=digest, max_attempts=2, **wish)
        assert done["action"] == "declared"
        assert [each["id"] for each in (await session.tool("status"))["intents"]] == [done["intent"]]

    serve(repo, act, allows_changes=True)
    assert [(each["tool"], each["reason"]) for each in asked(repo)] == [("declare_intent", "greet shorter")]


def test_a_run_is_resumed_by_the_digest_of_what_it_has_recorded(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    assert repo.run("run", "start").code == 1
    shown = json.loads(repo.cli("run", "show", "--format", "json").out)
    repo.stage({CODE: "right\n"})

    async def act(session: Session) -> None:
        (run,) = (await session.tool("status"))["runs"]
        assert (run["id"], run["digest"]) == (shown["id"], shown["digest"])
        assert "digest" in await session.refusal("resume", digest=NO_DIGEST, confirm=True)
        done = await session.tool("resume", digest=run["digest"], run=run["id"], confirm=True)
        assert (done["run"], done["status"]) == (run["id"], "completed")
        assert "digest" in await session.refusal("resume", digest=run["digest"], confirm=True)

    serve(repo, act, allows_changes=True)
    assert [(each["tool"], each["run"]) for each in asked(repo)] == [("resume", shown["id"])]


def test_what_cannot_be_recorded_is_not_done(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    Path(repo.common_dir, "patchgate").mkdir(exist_ok=True)

    async def act(session: Session) -> None:
        digest = (await session.tool("check", patch=PATCH))["digest"]
        Path(repo.common_dir, "patchgate", "events.jsonl").mkdir()
        assert "nothing was done" in await session.refusal("apply", patch=PATCH, digest=digest, confirm=True)

    serve(repo, act, allows_changes=True)
    assert (repo.path / "README.md").read_text() == "hello\n"


# ---- which repository ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_without_a_repository_it_starts_and_every_call_says_so(tmp_path: Path, mode: str) -> None:
    repo, empty = shop(tmp_path), tmp_path / "empty"
    empty.mkdir()

    async def act(session: Session) -> None:
        for name in ("status", "brief", "check"):
            said = await session.refusal(name)
            assert "no repository" in said
            assert "--repository" in said
        with pytest.raises(MCPError, match="no repository"):
            await session.read("status")

    serve(repo, act, mode=mode, directory=empty)
    serve(repo, act, mode=mode, directory=empty, roots=[], allows_changes=True)
    # A directory that was named is the only one.
    serve(repo, act, mode=mode, directory=empty, roots=[repo.path.as_uri()], is_named=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_root_of_the_client_is_the_repository_where_the_directory_is_none(
    tmp_path: Path, mode: str
) -> None:
    repo, empty = shop(tmp_path), tmp_path / "an empty one"
    empty.mkdir()

    async def act(session: Session) -> None:
        assert (await session.read("contracts"))["components"][0]["id"] == "calc"
        assert (await session.tool("check", patch=PATCH))["verdict"] == "accepted"

    serve(repo, act, mode=mode, directory=empty, roots=[empty.as_uri(), repo.path.as_uri()])


def test_a_root_that_is_no_folder_of_this_machine_is_skipped(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    place = ServerPlace(repo.env, str(tmp_path))
    hostile = (
        "https://example.com/repo",
        "file://elsewhere/repo",
        "file:///no%00where",
        "file:here",
        "://[",
        "",
    )
    place.look_in_roots([*hostile, "\ud800", (repo.path / "README.md").as_uri(), tmp_path.as_uri()])
    with pytest.raises(UsageError):
        place.require()
    place.look_in_roots([tmp_path.as_uri()] * MOST_ROOTS + [repo.path.as_uri()])
    assert not place.look()
    place.look_in_roots([repo.path.as_uri()])
    assert place.require() == str(repo.path)


def test_paths_start_at_the_root_wherever_the_server_was_started(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        assert "hello" in (await session.tool("brief", names=["README.md"]))["text"]

    repo = shop(tmp_path)
    serve(repo, act, directory=repo.path / "contracts")


def test_what_lies_in_the_repository_is_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = shop(tmp_path)
    for name in ("click.py", "src/sitecustomize.py"):
        repo.write(name, f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    repo.env["PYTHONPATH"] = str(repo.path / "src")
    monkeypatch.chdir(repo.path)

    async def act(session: Session) -> None:
        await session.tool("status")

    serve(repo, act)
    assert not (tmp_path / "ran").exists()


# ---- hostile arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("check", {"patch": 5}),
        ("check", {"patch": ["a"]}),
        ("check", {"patch": "x" * (MOST_PATCH + 1)}),
        ("check", {"source": "../../etc"}),
        ("check", {"pach": PATCH}),
        ("check", {"\x1b[2J": 1}),
        ("brief", {"names": "calc"}),
        ("brief", {"names": ["calc"] * 1001}),
        ("brief", {"names": ["x" * 10_000_000]}),
        ("brief", {"max_tokens": 0}),
        ("brief", {"max_tokens": "many"}),
        ("brief", {"names": [{"a": 1}]}),
        ("explain", {"rule": None, "path": {}}),
        ("apply", {"patch": PATCH}),
        ("apply", {"patch": PATCH, "digest": "0"}),
        ("apply", {"patch": PATCH, "digest": NO_DIGEST, "confirm": "sure"}),
        ("nothing", {}),
    ],
)
def test_arguments_of_the_wrong_type_or_size_are_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any]
) -> None:
    def start(place: ServerPlace, seconds: float) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(ServerPlace, "start", start)

    async def act(session: Session) -> None:
        assert "xxxxxxxxxx" not in await session.refusal(name, **arguments)

    serve(shop(tmp_path), act, allows_changes=True)


@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        ("tool", "brief", {"names": ["../../etc/passwd"]}),
        ("tool", "brief", {"names": ["/etc/passwd"]}),
        ("tool", "brief", {"names": ["a\0b", "\x1b]0;x\x07"]}),
        ("tool", "brief", {"names": ["\ud800"]}),
        ("tool", "check", {"patch": "\udcff"}),
        ("tool", "check", {"source": "HEAD"}),
        ("tool", "explain", {"path": "../x"}),
        ("tool", "explain", {"rule": "\x1b[2J"}),
        ("tool", "explain", {"rule": "secret", "path": "a"}),
        ("tool", "validate", {"components": ["../calc", "\0"]}),
        ("tool", "verify", {"revision": "--output=/tmp/x"}),
        ("tool", "verify", {"revision": "a\0b"}),
        ("tool", "verify", {"base": "\n\x1b[2J"}),
        ("tool", "verify", {"intent": "../../x"}),
        ("tool", "apply", {"patch": PATCH, "digest": NO_DIGEST}),
        ("change", "check", {}),
        ("change", "apply", {}),
        ("change", "resume", {"digest": NO_DIGEST, "run": "../../x\0"}),
        ("change", "declare_intent", {"digest": NO_DIGEST, "reason": "x", "allow": ["../x"]}),
        ("resource", "contract", {"id": "../../x\0"}),
        ("resource", "intent", {"id": "../../x\0"}),
        ("resource", "../status", {}),
        ("\x1b[2J", "status", {}),
    ],
)
def test_a_process_refuses_hostile_arguments_in_one_sentence(
    tmp_path: Path, kind: str, name: str, arguments: dict[str, Any]
) -> None:
    repo = shop(tmp_path)
    call = read_call(json.dumps({"kind": kind, "name": name, "arguments": arguments, "client": "x"}).encode())
    with pytest.raises(PatchgateError) as raised:
        answer(opened(repo), call, repo.env, str(tmp_path / "cache"))
    assert raised.value.message.isprintable()
    assert raised.value.hint
    assert asked(repo) == []


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"{}", b"\xff", b'{"kind": 1}', b"[" * 100_000])
def test_what_is_no_call_is_refused(raw: bytes) -> None:
    with pytest.raises(UsageError):
        read_call(raw)


def test_a_patch_of_nuls_and_controls_is_judged_like_any_other(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        found = await session.tool("check", patch="\0\x1b[2J\n" * 1000)
        assert found["verdict"] == "rejected"
        assert "\x1b" not in found["text"]
        assert len(found["text"]) < 4100

    serve(shop(tmp_path), act)


def test_a_call_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = shop(tmp_path)
    repo.policy(
        f'[analyses.slow]\ncommand = ["sh", "-c", "echo $$ >{tmp_path}/pid; sleep 600"]\nformat = "metrics"\n'
    )
    repo.stage({"README.md": "goodbye\n"})
    monkeypatch.setattr(mcp_server, "_LONG_SECONDS", {"verify": 5.0})

    async def act(session: Session) -> None:
        assert "took longer than 5 s" in await session.refusal("verify")
        # The next call is answered.
        assert (await session.tool("check"))["verdict"] == "accepted"

    serve(repo, act)
    pid = tmp_path / "pid"
    assert not pid.exists() or not Path("/proc", pid.read_text().strip()).exists()


# ---- over stdio ------------------------------------------------------------------------------------------


def over_stdio(repo: Repo, *arguments: str, directory: Path | None = None, **options: Any) -> Client:
    """Start the server as a process, as a client does."""
    command = ["agent", "mcp", *arguments]
    server = StdioServerParameters(
        command=str(EXECUTABLE), args=command, env=repo.env, cwd=directory or repo.path
    )
    return Client(server, **options)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_server_is_a_process_that_speaks_on_its_standard_streams(tmp_path: Path, mode: str) -> None:
    repo, person = shop(tmp_path), Person()

    async def act(session: Session) -> None:
        assert "xxxxx" not in await session.refusal("brief", names=["x" * 10_000_000])
        assert "there is no tool" in await session.refusal("\x1b[2J")
        digest = (await session.tool("check", patch=PATCH))["digest"]
        assert (await session.tool("apply", patch=PATCH, digest=digest))["applied"]
        assert (await session.read("status"))["schema"] == "patchgate.status/1"

    options = {"mode": mode, "elicitation_callback": person}
    client = over_stdio(
        repo, "--allow-changes", "--repository", str(repo.path), directory=tmp_path, **options
    )
    anyio.run(within, client, act)
    assert (repo.path / "README.md").read_text() == "goodbye\n"
    assert len(person.asked) == 1


UNREADABLE = {
    "half of a surrogate pair in a patch": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"check","arguments":{"patch":"\\ud800"}}}',
        7,
        "surrogate",
    ),
    "half of a surrogate pair in an id": (
        b'{"jsonrpc":"2.0","id":"\\udfff","method":"tools/list"}',
        None,
        "surrogate",
    ),
    "half of a surrogate pair in an address": (
        b'{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"patchgate://intent/\\ud800"}}',
        "x",
        "surrogate",
    ),
    "no JSON": (b"{", None, "not JSON"),
    "no request": (b'{"id":3,"method":5}', 3, "no request"),
    "too deep": (
        b'{"jsonrpc":"2.0","id":4,"method":"x","params":' + b"[" * 300 + b"]" * 300 + b"}",
        4,
        "too deeply",
    ),
    "far too deep": (b"[" * 100_000, None, "not JSON"),
}


def test_every_message_that_cannot_be_read_is_answered_with_a_sentence(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    first = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        # Nobody waits for an answer to a notification.
        b'{"jsonrpc":"2.0","method":"notifications/\\ud800"}',
    ]
    last = b'{"jsonrpc":"2.0","id":99,"method":"tools/list"}'
    sent = b"\n".join([*first, *(raw for raw, _, _ in UNREADABLE.values()), last]) + b"\n"
    answers: list[dict[str, Any]] = []
    with subprocess.Popen(
        [EXECUTABLE, "agent", "mcp"],
        cwd=repo.path,
        env=repo.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(sent)
        process.stdin.flush()
        while not answers or answers[-1]["id"] != 99:
            answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        assert process.wait() == 0
    assert {each["id"] for each in answers if "result" in each} == {1, 99}
    refused = [each for each in answers if "error" in each]
    for (_, asked_id, said), each in zip(UNREADABLE.values(), refused, strict=True):
        assert each["id"] == asked_id
        assert said in each["error"]["message"]


def test_two_clients_at_once_change_one_repository_one_after_the_other(tmp_path: Path) -> None:
    repo = shop(tmp_path)
    repo.commit({"one.txt": "old\n", "two.txt": "old\n"})
    patches = {name: one_line(f"{name}.txt", "old", "new").decode() for name in ("one", "two")}
    rival = one_line("README.md", "hello", "goodbye").decode()
    applied: list[str] = []

    def acting(name: str) -> Act:
        async def act(session: Session) -> None:
            for patch in (patches[name], rival):
                digest = (await session.tool("check", patch=patch))["digest"]
                if digest is None:
                    continue
                sent = {"patch": patch, "digest": digest, "confirm": True}
                result = await session.client.call_tool("apply", sent)
                if not result.is_error and result.structured_content and result.structured_content["applied"]:
                    applied.append(patch)
            assert (await session.tool("status"))["missing"] == []

        return act

    async def both() -> None:
        async with anyio.create_task_group() as group:
            for name in patches:
                group.start_soon(within, over_stdio(repo, "--allow-changes", mode="legacy"), acting(name))

    anyio.run(both)
    assert sorted(applied) == sorted([*patches.values(), rival])
    for name, content in (("one.txt", "new\n"), ("two.txt", "new\n"), ("README.md", "goodbye\n")):
        assert (repo.path / name).read_text() == content
    assert repo.cli("log", "--verify").code == 0
    assert repo.ask("status", "--porcelain").count("\n") == 2


def test_without_the_sdk_the_command_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_mcp()
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver.resolve", None)
    done = shop(tmp_path).cli("agent", "mcp")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 2
    assert 'pip install "patchgate[mcp]"' in done.err
