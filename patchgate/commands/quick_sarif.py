"""Recognise SARIF of a run that found nothing, without `json`, whose import takes 6 ms.

Less than `sarif_reader` accepts as clean, never more: whatever else is said is left to that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Keys of a run that `sarif_reader` reads besides, each of which may say that something is wrong.
_SAYING = frozenset({"invocations", "originalUriBaseIds", "artifacts"})
# `json_stream` has limits, too; a clean run needs little.
_MOST_TEXT, _MOST_NESTED = 1 << 16, 60
_BLANK = " \t\n\r"


class _Strict:
    """How the scanner in C reads JSON: no value twice, no constant that is no JSON."""

    strict = True
    object_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str]

    def __init__(self) -> None:
        self.memo = {}

    @staticmethod
    def parse_constant(name: str) -> Any:
        """Refuse `NaN` and `Infinity`."""
        raise ValueError(name)

    @staticmethod
    def object_pairs_hook(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make an object.

        Raises:
            ValueError: it has a key twice.
        """
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError
        return found


def is_clean_sarif(output: bytes) -> bool:
    """Whether this is SARIF 2.1.0 of at least one run, none of which has results or says more than its tool.

    Raises:
        ValueError: it is not JSON.
    """
    from _json import make_scanner

    text = output.decode("utf-8").strip(_BLANK)
    if len(text) > _MOST_TEXT or text.count("{") + text.count("[") > _MOST_NESTED:
        return False
    try:
        document, end = make_scanner(_Strict())(text, 0)  # type: ignore[arg-type]
    except (StopIteration, RecursionError):
        return False
    if end != len(text) or not isinstance(document, dict) or document.get("version") != "2.1.0":
        return False
    runs = document.get("runs")
    return isinstance(runs, list) and bool(runs) and all(map(_is_clean, runs))


def _is_clean(run: object) -> bool:
    if not isinstance(run, dict) or run.get("results") != [] or not _SAYING.isdisjoint(run):
        return False
    tool = run.get("tool")
    driver = tool.get("driver") if isinstance(tool, dict) and tool.keys() == {"driver"} else None
    if not isinstance(driver, dict) or driver.get("rules", []) != [] or "globalMessageStrings" in driver:
        return False
    name = driver.get("name")
    return isinstance(name, str) and bool(name)
