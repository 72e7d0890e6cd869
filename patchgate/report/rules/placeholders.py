"""The placeholder rules: what an added line must not leave for later. They can be allowed on the line."""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _placeholder(name: str, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.PLACEHOLDERS, "placeholders", Level.WARNING, what, why, example, fix, inline=True)


PLACEHOLDER_RULES = (
    _placeholder(
        "placeholder-word",
        "An added line holds TODO, FIXME, TBD, XXX or PLACEHOLDER where it is a mark: at the beginning of a "
        "comment, a heading or a list element, as a whole value, or followed by a colon.",
        "It says that the work is not done.",
        "# TODO: handle the empty list",
        "Do what it says, or take it out and open an issue.",
    ),
    _placeholder(
        "placeholder-bracket",
        "An added line holds `[TBD]`, `[TODO]`, `[INSERT]`, `[PLACEHOLDER]` or `[MISSING]`.",
        "Something was to be filled in there.",
        "Owner: [TBD]",
        "Fill it in.",
    ),
    _placeholder(
        "placeholder-hole",
        "An added line holds a hole of a template that was not filled, such as `<your name>`.",
        "A reader gets the template instead of the text.",
        "Dear <your name>,",
        "Fill it in.",
    ),
    _placeholder(
        "placeholder-filler",
        "An added line holds filler text: lorem ipsum.",
        "It stands for a text that was not written.",
        "Lorem ipsum dolor sit amet",
        "Write the text.",
    ),
    _placeholder(
        "placeholder-body",
        "An added line makes a function that does nothing, or not all: it raises NotImplementedError or the "
        "like of another language, or its body is only `...` or `pass`. Protocols, abstract methods, "
        "overloads and stub files are no placeholders, nor are classes, handlers and loops.",
        "It is there to be called, and does not do what its name says.",
        "def total(rows): raise NotImplementedError",
        "Write the body; make abstract what others are to write; what is to do nothing has a docstring "
        "instead of `pass`.",
    ),
    _placeholder(
        "placeholder-marker",
        "An added line matches one of the policy's own `[claims] markers`.",
        "The policy calls it a placeholder.",
        'markers = [{ name = "ticket", pattern = "ABC-0000", example = "see ABC-0000" }]',
        "Replace it by what it stands for.",
    ),
)
