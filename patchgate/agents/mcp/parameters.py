"""The parameters of the MCP tools: their types, limits and descriptions, as clients see them.

No annotation here is a string, because the SDK reads them as values.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from patchgate.agents.mcp.arguments import MOST_NUMBER

DIFF: Literal["diff"] = "diff"
MOST_PATCH = 8 << 20
_MOST_TEXT = 4096
_MOST_ENTRIES = 1000


class PatchNotGiven(str):
    """Stands for a patch that was not sent; an empty one is a patch."""

    __slots__ = ()


Text = Annotated[str, Field(max_length=_MOST_TEXT)]
Texts = Annotated[list[Text], Field(max_length=_MOST_ENTRIES)]
PatchText = Annotated[
    str,
    Field(max_length=MOST_PATCH, description="A unified diff, as git diff writes it, or what input names."),
]
# The SDK reads a text as JSON where a parameter may be something else than one, such as None.
NO_PATCH = PatchNotGiven()
NOT_GIVEN: Any = Field(default_factory=lambda: NO_PATCH)
Format = Annotated[
    Literal["diff", "envelope", "search-replace", "edits", "files", "auto"],
    Field(description="The format of the patch; any but diff only if [apply] inputs of the policy lists it."),
]
Number = Annotated[int, Field(ge=1, le=MOST_NUMBER)]
Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
Confirm = Annotated[bool, Field(description="true, if this client cannot ask a person.")]
