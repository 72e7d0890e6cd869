"""The floor plan: imports go down only, features never meet, each third party has one home.

Reads the source, so what is imported inside a function, for types alone, or by name counts as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from patchgate.check.features import FEATURES, GATES

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "patchgate"

# Each floor may import what lies below it; the folders of one floor never import each other.
FLOORS = (
    ("exit_codes", "values"),
    ("errors",),
    ("process", "storage"),
    ("git",),
    ("report",),
    ("policy",),
    ("ledger", "commands"),
    ("check",),
    ("patches", "intents", "approvals", "questions"),
    ("apply", "hooks", "verify", "components", "placeholders"),
    ("runs",),
    ("agents",),
    ("cli",),
)
# A module by itself: it is compiled into each repository and runs there alone, so nothing is shared with it.
APART = "patchgate.hooks.fast.recognise"
APART_IMPORTS = {"posix", "sys", "_imp.source_hash", "marshal.loads", "typing.Any"} | {
    *("_sha1.sha1", "hashlib.sha1", "hashlib.sha256"),
    # Where a change has commands, or is a merge, the rest of the package decides.
    "patchgate.hooks.fast.commit_commands.require_accepted",
    "patchgate.hooks.fast.clean_merge.recognise_merge",
}
APART_MOST_LINES = 450
# Copied into the tests that `component tests` makes, never imported: what it imports is for those tests.
TEMPLATE = "patchgate.components.testgen_template"
# The pipeline knows features by the table there alone.
FEATURES_TABLE = "patchgate.check.features"
HOMES = {
    "pygit2": {"git"},
    "click": {"cli"},
    "subprocess": {"process"},
    "mcp": {"agents"},
    "mcp_types": {"agents"},
    "anyio": {"agents"},
    "pydantic": {"policy", "components", "agents"},
    "pydantic_core": {"policy", "components"},
    "pathspec": {"policy"},
    "packaging": {"policy"},
    "yaml": {"commands"},
}
# `_sha2` is a part of Python since 3.12.
STANDARD = sys.stdlib_module_names | {"_sha2"}
# Pure modules know no files, no children, no clock and no chance.
PURE = {
    "agents.hooks": "answers hook_input tool_effects",
    "agents.settings": "clients json_text settings_text",
    "agents.shell": "git_words shell_rules shell_runners shell_text",
    "apply.fixes": "line_merge",
    "check": """
        case ci_environment ci_event content denied_paths gate governance python_tokens refs shape
        unsafe_paths vague_phrases
    """,
    "commands": "analysis_results finding_identity",
    "commands.importing": """
        draft known_hooks known_tools lefthook_config lint_staged_config path_patterns pre_commit_config
        shell_words
    """,
    "components": """
        baseline_file component_facts component_names contract_facts contract_model contract_reading
        contract_types contract_versions contracts drift drift_comparison python_statements python_tests
        staleness weakened_tests
    """,
    "git": "model path quoting",
    "intents": "intent scope",
    "patches": """
        edit_diff edits file_diff hunk_mismatch hunk_places line_ends line_matching patch_fixes patch_headers
        patch_hunk_faults patch_hunks patch_model patch_parser patch_repair path_selection planning
        proposals reply_actions reply_grammar section_fixes
    """,
    "patches.formats": "anchors envelope proposal search_replace string_edits whole_files",
    "placeholders": """
        comment_syntax empty_functions placeholder_gate placeholder_matches
        todo_context todo_words
    """,
    "placeholders.claims": """
        claim claim_decision claim_scan claim_wording feedback_parsing
    """,
    "policy": """
        claims_settings codeowners command command_files command_settings command_validators
        compiled_policy component config config_models config_types content_rules file_kinds glob_matching
        glob_syntax placeholder_markers policy regular_expressions rule_details run_settings run_validators
        settings settings_loader strict_json toml_lines validators
    """,
    "questions": "assumptions interview question",
    "report": "*",
    "report.rules": "*",
    "runs": "fault_reading phases timeouts triage",
    "verify": """
        regressions suppression_abuse verification_reasons verification_result verification_text
        verification_verdict
    """,
}
IMPURE = {
    "datetime",
    "glob",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
NAMELESS = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "tools_common"}
MOST_LINES = 450
MOST_DOCSTRING = 5
MOST_FUNCTION = 60
SEEN_BY_MOUTHS_ALONE = {"os.environ", "os.getenv", "sys.argv", "sys.stdin", "sys.stdout", "sys.stderr"}


@dataclass(frozen=True)
class Import:
    """One import: which module says it, on which line, and what it names (`patchgate.git.objects`)."""

    module: str
    line: int
    names: str

    @property
    def folder(self) -> str:
        """The folder that imports; `__main__` belongs to `cli`."""
        parts = self.module.split(".")
        if len(parts) == 1:
            return ""
        return "cli" if parts[1] == "__main__" else parts[1]

    @property
    def target(self) -> str | None:
        """Our folder that is imported; None for somebody else's module, "" for the package itself."""
        parts = self.names.split(".")
        if parts[0] != "patchgate":
            return None
        return parts[1] if len(parts) > 1 and is_folder(parts[1]) else ""

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.names}"


def is_folder(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, f"{module}:{node.lineno}: a relative import"
            assert node.level == 0, f"{module}:{node.lineno}: a relative import"
            for alias in node.names:
                yield Import(module, node.lineno, f"{node.module}.{alias.name}")
        elif module in {FEATURES_TABLE, TEMPLATE}:
            continue
        elif isinstance(node, ast.Call) and name_of(node.func) in {"import_module", "__import__"}:
            yield Import(module, node.lineno, constant_start(node.args[0]))


def name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def constant_start(argument: ast.expr) -> str:
    """Read the name that is imported by a call, or the constant part that an f-string begins with."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    assert isinstance(argument, ast.Constant), ast.dump(argument)
    assert isinstance(argument.value, str), ast.dump(argument)
    return argument.value


MODULES = modules()


@cache
def imports() -> Sequence[Import]:
    """List all imports of the package; read by the tests, for it takes seconds."""
    return [each for module, path in MODULES.items() for each in imports_of(module, path)]


def module_of(names: str) -> str:
    """Name the module that an import of a name means."""
    return names if names in MODULES else names.rpartition(".")[0]


def floor_of(folder: str) -> int:
    return next((number for number, folders in enumerate(FLOORS) if folder in folders), -1)


def is_pure(module: str) -> bool:
    """Tell whether a module, or what is imported from one, is pure."""
    folder, _, name = module.removeprefix("patchgate.").rpartition(".")
    listed = PURE.get(folder, "")
    return listed == "*" or name in listed.split()


def test_every_folder_is_on_the_floor_plan() -> None:
    folders = {module.split(".")[1] for module in MODULES if "." in module} - {"__main__"}
    assert folders == {folder for floor in FLOORS for folder in floor}


def test_no_modules_import_each_other_in_a_circle() -> None:
    pairs = {(each.module, module_of(each.names)) for each in imports() if module_of(each.names) in MODULES}
    pairs = {(one, other) for one, other in pairs if one != other}
    # What imports nothing that is left, or is imported by nothing that is left, is in no circle.
    while loose := {name for pair in pairs for name in pair} - (
        {one for one, _ in pairs} & {other for _, other in pairs}
    ):
        pairs = {pair for pair in pairs if loose.isdisjoint(pair)}
    assert sorted(pairs) == []


def test_imports_go_down_only_and_features_never_import_each_other() -> None:
    wrong = [
        str(each)
        for each in imports()
        if each.target and each.target != each.folder and floor_of(each.target) >= floor_of(each.folder)
    ]
    assert wrong == []


def test_the_table_of_features_names_modules_of_higher_floors() -> None:
    modules = [module for _, module, _ in FEATURES] + [module for _, _, module in GATES]
    floors = [floor_of(module.split(".")[1]) for module in modules]
    assert set(modules) <= MODULES.keys()
    assert min(floors) > floor_of("check")
    assert {feature for _, feature, _ in GATES} <= {name for name, _, _ in FEATURES}


def test_the_fast_path_stands_apart_and_is_small() -> None:
    others = {each.module for each in imports() if each.names.startswith(APART)}
    assert others == {"patchgate.cli.fast_push", "patchgate.agents.hooks.quick_files"}
    assert {each.names for each in imports() if each.module == APART} <= APART_IMPORTS
    assert MODULES[APART].read_text(encoding="utf-8").count("\n") <= APART_MOST_LINES


def test_what_the_fast_path_imports_for_types_is_never_imported() -> None:
    program = ast.parse(MODULES[APART].read_bytes())
    assert "TYPE_CHECKING = False" in map(ast.unparse, program.body)
    for_types = [
        inner
        for each in program.body
        if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"
        for inner in each.body
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    every = [each for each in ast.walk(program) if isinstance(each, ast.Import | ast.ImportFrom)]
    imported = [each for each in every if each not in for_types]
    assert len(every) == len(imported) + len(for_types)
    assert "typing" not in {each.module for each in imported if isinstance(each, ast.ImportFrom)}


def test_nothing_imports_what_is_only_copied() -> None:
    assert TEMPLATE in MODULES
    assert [str(each) for each in imports() if TEMPLATE in {each.names, module_of(each.names)}] == []
    assert {each.target for each in imports() if each.module == TEMPLATE} == {None}


def test_each_third_party_has_one_home() -> None:
    wrong = [
        str(each)
        for each in imports()
        if each.target is None
        and each.module != TEMPLATE
        and ((package := each.names.split(".")[0]) in HOMES or package not in STANDARD)
        and each.folder not in HOMES.get(package, set())
    ]
    assert wrong == []


def test_pure_modules_import_no_files_children_clock_or_chance() -> None:
    wrong = []
    for each in imports():
        if not is_pure(each.module):
            continue
        is_impure = each.target == "git" and not (is_pure(each.names) or is_pure(module_of(each.names)))
        if each.names.split(".")[0] in IMPURE or each.target in {"process", "storage", "ledger"} or is_impure:
            wrong.append(str(each))
    assert wrong == []


def test_pure_modules_open_no_file_and_print_nothing() -> None:
    wrong = [
        f"{module}:{node.lineno} calls {node.func.id}"
        for module, path in MODULES.items()
        if is_pure(module)
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "print", "input", "exec", "eval"}
    ]
    assert wrong == []


def test_every_module_that_is_named_as_pure_is_there() -> None:
    named = {f"patchgate.{folder}.{name}" for folder, names in PURE.items() for name in names.split()}
    assert {each for each in named if not each.endswith("*")} <= MODULES.keys()


def test_only_the_command_line_reads_the_environment_or_prints() -> None:
    wrong = []
    for module, path in MODULES.items():
        folder = module.split(".")[1:2]
        if folder == ["cli"]:
            continue
        # What is run as a program of its own has no mouth but its arguments.
        seen = SEEN_BY_MOUTHS_ALONE - ({"sys.argv"} if module == APART else set())
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in seen:
                wrong.append(f"{module}:{node.lineno} reads {ast.unparse(node)}")
            if isinstance(node, ast.Call) and name_of(node.func) in {"print", "getcwd"}:
                wrong.append(f"{module}:{node.lineno} calls {name_of(node.func)}")
    assert wrong == []


def test_a_module_has_a_name_of_its_own_and_says_what_it_does() -> None:
    wrong = []
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > MOST_LINES:
            wrong.append(f"{module} is longer than {MOST_LINES} lines")
        if not NAMELESS.isdisjoint(module.split(".")):
            wrong.append(f"{module} has a name that says nothing")
        said = (ast.get_docstring(ast.parse(text)) or "").splitlines()
        if (not said and module != "patchgate.__main__") or len(said) > MOST_DOCSTRING:
            wrong.append(f"{module} has no docstring, or one of more than {MOST_DOCSTRING} lines")
    assert wrong == []


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{module}:{node.lineno} {node.name}"
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MOST_FUNCTION
    ]
    assert long == []


def test_a_class_name_occurs_once_in_the_package() -> None:
    found: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name.lstrip("_"), []).append(module)
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_the_reader_of_imports_sees_every_kind_of_import(tmp_path: Path) -> None:
    """The tests above can fail: an import within a function, for types, or by name is found."""
    place = tmp_path / "sly.py"
    place.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from patchgate.git.objects import Objects\n"
        "def run():\n    import pygit2\n    import importlib\n"
        "    importlib.import_module('patchgate.cli.program')\n",
        encoding="utf-8",
    )
    found = {each.names: each.target for each in imports_of("patchgate.check.sly", place)}
    assert found["patchgate.git.objects.Objects"] == "git"
    assert found["patchgate.cli.program"] == "cli"
    assert found["pygit2"] is None
    assert floor_of("git") < floor_of("check")
