"""A repository whose analysis tells what its files say, and `verify` as its command is called.

A line of a tracked file that begins with `BAD` is a finding there; `BAD also PATH` names another file too;
`BAD nowhere` names none; `HID` is one that is suppressed. The metric `ifs` counts the `if` of each file.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from patchgate.intents.intent import Intent, Moment
from patchgate.intents.stored_intents import StoredIntents
from patchgate.verify.verification_json import json_schema
from tests.world import Answer, Content, Repo

_TELLER = """\
import json, os, sys, time
beside = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(beside, "runs"), "a") as file:
    file.write("run\\n")
slow = os.path.join(beside, "slow")
if os.path.exists(slow):
    os.remove(slow)
    time.sleep(2)
if os.path.exists("stop"):
    sys.exit("this tool stops here")
results, metrics = [], []
def place(path, line=None):
    physical = {"artifactLocation": {"uri": "".join("%%%02x" % byte for byte in os.fsencode(path))}}
    if line:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}
for folder, folders, names in os.walk("."):
    folders[:] = [name for name in folders if name != ".git"]
    for name in names:
        path = os.path.relpath(os.path.join(folder, name))
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\\n")
        ifs = sum(line.strip().startswith("if ") for line in lines)
        if name.endswith(".py"):
            metrics.append({"path": path, "symbol": "all", "name": "ifs", "value": ifs})
        for number, line in enumerate(lines, 1):
            word, _, rest = line.partition(" ")
            if word not in ("BAD", "HID"):
                continue
            result = {"ruleId": "B1", "message": {"text": line}}
            if rest != "nowhere":
                result["locations"] = [place(path, number)]
            if rest.startswith("also "):
                result["relatedLocations"] = [place(rest[5:])]
            if word == "HID":
                result["suppressions"] = [{"kind": "inSource"}]
            results.append(result)
extra = os.path.join(beside, "extra")
if os.path.exists(extra):
    results.append({"ruleId": "B2", "message": {"text": open(extra).read()}})
if sys.argv[1] == "sarif":
    run = {"tool": {"driver": {"name": "teller"}}, "results": results}
    print(json.dumps({"version": "2.1.0", "runs": [run]}))
else:
    print(json.dumps({"metrics": metrics}))
"""

NEW = ("no-new", "findings:new", 0)
IFS = ("few-ifs", "ifs", 2)


def _told(name: str, output: str) -> str:
    return f'[commands.{name}]\nkind = "lint"\non = ["verify"]\noutput = "{output}"\n'


class Workshop(Repo):
    """A repository with a policy that names the analyses."""

    @classmethod
    def open(
        cls,
        folder: Path,
        files: dict[str, Content] | None = None,
        *,
        thresholds: tuple[tuple[str, str, int], ...] = (NEW, IFS),
        more: str = "",
    ) -> Workshop:
        """Make it, with its files in one commit."""
        made = Repo.create(folder)
        shop = cls(made.path, made.env | {"XDG_CACHE_HOME": str(folder / "cache")})
        shop.beside.mkdir()
        shop.teller.write_text(_TELLER)
        text = shop.policy_text(*thresholds) + more
        shop.commit({"patchgate.toml": text, "a.py": "1\n", "b.py": "1\n", **(files or {})}, "Open the shop")
        return shop

    @property
    def beside(self) -> Path:
        """The folder beside the repository in which the tool lies."""
        return self.path.parent / "tools"

    @property
    def teller(self) -> Path:
        """The tool."""
        return self.beside / "teller.py"

    def policy_text(self, *thresholds: tuple[str, str, int]) -> str:
        """Write the analyses and the thresholds."""
        words = [sys.executable, "-IS", str(self.teller)]
        text = f"{_told('told', 'sarif')}command = {json.dumps([*words, 'sarif'])}\n"
        if any(metric == "ifs" for _, metric, _ in thresholds):
            text += f"{_told('counted', 'metrics')}command = {json.dumps([*words, 'metrics'])}\n"
        for name, metric, most in thresholds:
            text += f'[[thresholds]]\nname = "{name}"\nmetric = "{metric}"\nmax = {most}\n'
        return text

    @property
    def runs(self) -> int:
        """How often the tool has run."""
        place = self.beside / "runs"
        return place.read_text().count("\n") if place.exists() else 0

    def declare(self, *allowed: str, related: str = "", more: tuple[str, ...] = ()) -> str:
        """Declare an intent, and give its id."""
        words = [word for each in allowed for word in ("--allow", each)]
        words += ["--related", related] if related else []
        done = self.cli("intent", "declare", "-m", "Round prices", "--format", "json", *words, *more)
        assert done.code == 0, done.err
        return str(done.report["intent"]["id"])

    @property
    def intents(self) -> StoredIntents:
        """The stored intents."""
        return StoredIntents(str(self.path / ".git"))

    def rewrite(self, name: str, **changes: Any) -> Intent:
        """Change what is stored of an intent, as somebody would who can write below `.git`."""
        found = self.intents.get(name)
        assert found is not None
        changed = replace(found, **changes)
        self.intents.write(changed)
        return changed

    def answer(self, *arguments: str, cwd: Path | None = None) -> Answer:
        """Verify, and give what the command said."""
        return self.cli("verify", "--format", "json", "-q", *arguments, cwd=cwd)

    def verify(self, *arguments: str, cwd: Path | None = None) -> dict[str, Any]:
        """Verify, and give the document, which fits its schema as its exit code does."""
        done = self.answer(*arguments, cwd=cwd)
        document = done.report
        assert document["schema"] == "patchgate.verification/2", document
        Draft202012Validator(json_schema()).validate(document)
        assert done.code == {"accepted": 0, "rejected": 1, "undecided": 3}[document["verdict"]]
        return document


def hours_ago(hours: float) -> Moment:
    """Name a moment by the wall's clock alone."""
    return Moment(time.time() - 3600 * hours)


def places(results: list[dict[str, Any]]) -> list[tuple[str | None, int | None]]:
    """Give where results are."""
    return [(each["path"], each["line"]) for each in results]
