"""The throw-away repositories in which the commands of the pages are run, each made for one page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path


def output(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Run one command of a page, as a reader would type it; what it writes, errors included."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if command.startswith("git patchgate init"):
        # The id that it chose would change that of every later commit.
        policy = folder / "patchgate.toml"
        text = re.sub(r'(?m)^id = ".*"$', 'id = "5b1f0c9e7d3a2468"', policy.read_text(encoding="utf-8"))
        policy.write_text(text, encoding="utf-8")
    return done.stdout.decode("utf-8")


def make_shop(shop: Path, environment: dict[str, str]) -> None:
    (shop / "runs").mkdir(parents=True)
    (shop / "shop.py").write_text("total = 1 + 1\n", encoding="utf-8")
    (shop / "runs" / "record").write_text("run 1: 2\n", encoding="utf-8")
    for command in ("git init -q -b main", "git add -A", "git commit -q -m 'Start the shop'"):
        output(command, shop, environment)


def make_store(store: Path, environment: dict[str, str]) -> None:
    make_shop(store, environment)
    (store / "patchgate.toml").write_text('[policy]\ndeny_prefixes = ["runs"]\n', encoding="utf-8")
    for command in (
        "git add -A",
        "git commit -q -m 'Protect the records'",
        "git patchgate install",
        "echo 'run 1: 3' >runs/record",
        "git add -A",
    ):
        output(command, store, environment)


_MARKET = {
    "prices.py": "apples = 1\npears = 3\nplums = 4\nfigs = 9\n",
    "runs/record": "run 1: 2\n",
    "patchgate.toml": '[policy]\ndeny_prefixes = ["runs"]\n\n[apply]\ninputs = ["diff", "envelope"]\n',
    ".gitignore": "*.patch\nedits.json\nanswer.md\nenvelope.txt\n",
}


def make_market(market: Path, environment: dict[str, str]) -> None:
    (market / "runs").mkdir(parents=True)
    for name, text in _MARKET.items():
        (market / name).write_text(text, encoding="utf-8")
    for command in ("git init -q -b main", "git add -A", "git commit -q -m 'Open the market'"):
        output(command, market, environment)
    (market / "prices.py").write_text(
        _MARKET["prices.py"].replace("apples = 1", "apples = 2"), encoding="utf-8"
    )
    output("git diff >good.patch && git checkout -q prices.py", market, environment)
    edit = {"path": "prices.py", "start": 2, "end": 2, "new_text": "pears = 5\n"}
    (market / "edits.json").write_text(json.dumps({"patch": {"edits": [edit]}}) + "\n", encoding="utf-8")


_BAKERY = {
    "prices.py": "apples = 1\npears = 3\n\n\ndef total(count):\n    return count\n",
    "patchgate.toml": "# Our rules.\n[policy]\nmax_file_bytes = 100_000\n",
    ".pre-commit-config.yaml": """\
repos:
  - repo: https://github.com/astral-sh/ruff-pre-commit
    rev: v0.9.1
    hooks:
      - id: ruff
        args: [--fix]
      - id: ruff-format
  - repo: https://github.com/pre-commit/pre-commit-hooks
    rev: v5.0.0
    hooks: [{id: check-merge-conflict}]
""",
}


def make_bakery(bakery: Path, environment: dict[str, str]) -> None:
    bakery.mkdir()
    for name, text in _BAKERY.items():
        (bakery / name).write_text(text, encoding="utf-8")
    for command in (
        "git init -q -b main",
        "git add -A",
        "git commit -q -m 'Open the bakery'",
        "git init -q --bare -b main ../bakery.git",
        "git remote add origin ../bakery.git",
        "git push -q -u origin main",
        "git remote set-head origin main",
        "git patchgate install",
    ):
        output(command, bakery, environment)


_KIOSK = {
    "prices.py": "apples = 1\npears = 3\n\n\ndef total(count):\n    return count * apples\n",
    "tests.sh": """\
got=$(python3 -c 'import prices; print(prices.total(2))')
[ "$got" = 2 ] || { echo "total(2) is $got, and two apples cost 2"; exit 1; }
""",
    "runs/record": "run 1: 2\n",
    "patchgate.toml": """\
[policy]
deny_prefixes = ["runs"]

[commands.syntax]
kind = "lint"
command = ["python3", "-m", "compileall", "-q", "."]

[commands.tests]
kind = "test"
command = ["sh", "tests.sh"]
timeout = "1m"
""",
    ".gitignore": "*.patch\n__pycache__/\n",
}
_KIOSK_PATCHES = {
    "first.patch": """\
diff --git a/prices.py b/prices.py
--- a/prices.py
+++ b/prices.py
@@ -3,4 +3,4 @@


 def total(number):
-    return count * apples
+    return number * apples
diff --git a/runs/record b/runs/record
--- a/runs/record
+++ b/runs/record
@@ -1 +1 @@
-run 1: 2
+run 1: 3
""".replace("\n\n\n def", "\n \n \n def"),
    "second.patch": """\
diff --git a/prices.py b/prices.py
--- a/prices.py
+++ b/prices.py
@@ -5,2 +5,2 @@
 def total(count):
-    return count * apples
+    return count * pears
""",
    "third.patch": """\
diff --git a/prices.py b/prices.py
--- a/prices.py
+++ b/prices.py
@@ -5,2 +5,2 @@
 def total(count):
-    return count * apples
+    return max(0, count) * apples
""",
}


def make_kiosk(kiosk: Path, environment: dict[str, str]) -> None:
    (kiosk / "runs").mkdir(parents=True)
    for name, text in (_KIOSK | _KIOSK_PATCHES).items():
        (kiosk / name).write_text(text, encoding="utf-8")
    for command in ("git init -q -b main", "git add -A", "git commit -q -m 'Open the kiosk'"):
        output(command, kiosk, environment)


_STUDIO = {
    "src/shaping.py": """\
def area(width, height):
    if width < 0 or height < 0:
        raise ValueError("a side is negative")
    return width * height
""",
    "contracts/shaping/interface.json": """\
{
  "component_id": "shaping",
  "version": "1.0.0",
  "description": "Areas of plane figures.",
  "functions": [
    {
      "name": "area",
      "description": "Multiplies width by height.",
      "inputs": [{"name": "width", "type": "int"}, {"name": "height", "type": "int"}],
      "output": {"type": "int"},
      "error_cases": [
        {"error": "ValueError", "condition": "a side is negative", "inputs": {"width": -1, "height": 1}}
      ],
      "side_effects": [{"kind": "none"}],
      "idempotent": true,
      "performance_budget": {"p95_latency_ms": 50},
      "examples": [{"inputs": {"width": 2, "height": 3}, "output": 6}]
    }
  ]
}
""",
    "patchgate.toml": """\
[components.shaping]
contract = "contracts/shaping/interface.json"
tests = ["tests/test_shaping.py"]
implementation = ["src/shaping.py"]
""",
    ".gitignore": "__pycache__/\n",
}


def make_studio(studio: Path, environment: dict[str, str]) -> None:
    for name, text in _STUDIO.items():
        (studio / name).parent.mkdir(parents=True, exist_ok=True)
        (studio / name).write_text(text, encoding="utf-8")
    (studio / "tests").mkdir()
    for command in (
        "git init -q -b main",
        "git add -A",
        "git commit -q -m 'Open the studio'",
        "git patchgate install",
    ):
        output(command, studio, environment)


_WORKSHOP = {
    "prices.py": "def total(count, price):\n    return count * price\n",
    "stock.py": "def left(shelf, sold):\n    return shelf - sold\n",
    "tests/test_prices.py": "from prices import total\n\n\ndef test_total():\n    assert total(2, 3) == 6\n",
    "tools/measure.py": '''\
"""Tell how many branches each function has."""

import ast
import json
import pathlib

metrics = []
for file in sorted(pathlib.Path(".").rglob("*.py")):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            branches = sum(isinstance(each, (ast.If, ast.For, ast.While)) for each in ast.walk(node))
            metrics.append(
                {"path": str(file), "symbol": node.name, "name": "branches", "value": branches}
            )
print(json.dumps({"metrics": metrics}))
''',
    "patchgate.toml": """\
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--isolated", "--select", "F,E9", "--output-format", "sarif", "--exit-zero", "."]
output = "sarif"
on = ["verify"]

[commands.branches]
kind = "lint"
command = ["python3", "tools/measure.py"]
output = "metrics"
on = ["verify"]

[[thresholds]]
name = "few-branches"
metric = "branches"
max = 2
""",
    ".gitignore": "__pycache__/\n.ruff_cache/\n",
}


def make_workshop(workshop: Path, environment: dict[str, str]) -> None:
    """Make a clone whose origin gets a commit of somebody else, with a finding in it."""
    for name, text in _WORKSHOP.items():
        (workshop / name).parent.mkdir(parents=True, exist_ok=True)
        (workshop / name).write_text(text, encoding="utf-8")
    for command in (
        "git init -q -b main",
        "git add -A",
        "git commit -q -m 'Open the workshop'",
        "git clone -q --bare . ../origin.git",
        "git remote add origin ../origin.git && git fetch -q && git branch -q -u origin/main",
        "git clone -q ../origin.git ../colleague",
        "cd ../colleague && sed -i '1i import os' stock.py && git commit -q -a -m 'Count the stock'",
        "git -C ../colleague push -q",
        "git patchgate install",
    ):
        output(command, workshop, environment)


_GARAGE = {
    "prices.py": "import os\n\n\ndef total(count, price):\n    return count * price\n",
    "tests/check.py": "import prices\n\nassert prices.total(2, 3) == 6\n",
    "ruff.toml": '[lint]\nselect = ["E9", "F"]\n',
    "patchgate.toml": """\
[commands.ruff]
kind = "lint"
command = ["ruff", "check", "--no-fix", "--no-cache", "--output-format", "sarif", "{files}"]
output = "sarif"
new_only = true
files = ["*.py"]
needs = ["ruff.toml"]
on = ["commit", "push"]

[commands.format]
kind = "format"
command = ["ruff", "format", "--no-cache", "{files}"]
files = ["*.py"]
needs = ["ruff.toml"]
on = ["commit"]

[commands.tests]
kind = "test"
command = ["python3", "tests/check.py"]
files = ["*.py"]
scope = "tree"
env = {PYTHONPATH = "."}
on = ["commit"]
""",
}


def make_garage(garage: Path, environment: dict[str, str]) -> None:
    """Make a clone whose origin has commands in its policy, and a finding of old."""
    for name, text in _GARAGE.items():
        (garage / name).parent.mkdir(parents=True, exist_ok=True)
        (garage / name).write_text(text, encoding="utf-8")
    for command in (
        "git init -q -b main",
        "git add -A",
        "git commit -q -m 'Open the garage'",
        "git clone -q --bare . ../origin.git",
        "git remote add origin ../origin.git && git fetch -q && git branch -q -u origin/main",
        "git patchgate install",
    ):
        output(command, garage, environment)


_OFFICE = {
    "docs/report.md": """\
# Report of the year

Sales rose in every quarter. The numbers come from the books; the method is in method.md.
""",
    "docs/method.md": "# Method\n\nWe add up what was paid, and leave out what was cancelled.\n",
    "README.md": "# Reports\n\nOne report a year.\n",
}
_VERDICT = {
    "passed": False,
    "reason_code": "incomplete_deliverable_placeholder",
    "severity_class": "major",
    "feedback": "A placeholder remains in the report.",
    "confidence": 0.9,
    "subject": "report",
    "deliverables": ["docs/report.md"],
    "changed_files": ["docs/report.md", "docs/method.md"],
}


def make_office(office: Path, environment: dict[str, str]) -> None:
    (office / "docs").mkdir(parents=True)
    for name, text in _OFFICE.items():
        (office / name).write_text(text, encoding="utf-8")
    for command in ("git init -q -b main", "git add -A", "git commit -q -m 'Open the office'"):
        output(command, office, environment)
    (office / "verdict.json").write_text(json.dumps(_VERDICT, indent=2) + "\n", encoding="utf-8")
