"""The rules of the agents' reply protocol: what one raw reply must be before anything in it is looked at.

All are invariant: a reply that can be read in two ways must not be read in one of them.
"""

from __future__ import annotations

from patchgate.report.rules.rule import Level, Rule, Stage


def _reply(name: str, what: str, why: str, example: str, fix: str) -> Rule:
    return Rule(name, Stage.PARSE, "reply", Level.ERROR, what, why, example, fix, invariant=True)


REPLY_RULES = (
    _reply(
        "missing-function-tag",
        "A reply holds no `<function=NAME>` block, or the block, a parameter or a CDATA section in it is "
        "not closed.",
        "A reply that was cut off must not pass for a shorter one.",
        "I have finished.",
        "Send one whole block: `<function=NAME>`, its parameters, `</function>`.",
    ),
    _reply(
        "invalid-multi-block",
        "A reply holds more than one `<function=NAME>` tag outside CDATA.",
        "One reply asks for one action; of two nobody could say which was meant, or in which order.",
        "<function=repair>…</function><function=submit></function>",
        "Send one block; text that holds the tag goes into `<![CDATA[…]]>`.",
    ),
    _reply(
        "duplicate-param",
        "A parameter is given twice, or two are given of which only one may be.",
        "Readers differ on which of two values counts.",
        'two of <param name="subplan">; or patch and edits in one repair',
        "Leave one of them out.",
    ),
    _reply(
        "unknown-param",
        "A parameter is none of those that the action takes.",
        "A misspelt parameter would be ignored, and another value used than was meant.",
        '<param name="anchor"> in explore',
        "Use the parameters that `git patchgate agent reply --describe` lists for the action.",
    ),
    _reply(
        "missing-required-param",
        "A parameter that the action needs is not there, or is empty.",
        "Nothing is guessed in its place.",
        "repair without subplan",
        "Add the parameter.",
    ),
    _reply(
        "invalid-json-param",
        "The value of a JSON parameter is not JSON, or not what the parameter takes.",
        "Reading something near what was written would do something else than was meant.",
        '<param name="anchors">src/app.py</param>',
        'Write JSON: `["src/app.py"]` for a list, `1` for a number, without quotes.',
    ),
    _reply(
        "unknown-action",
        "The name in `<function=NAME>` is no action.",
        "Only what stands in the table of actions can be asked for.",
        "<function=repiar>",
        "Use an action that `git patchgate agent reply --describe` lists.",
    ),
    _reply(
        "extra-text",
        "There is text outside the block, between its parameters, or beside a CDATA section.",
        "What stands there would be dropped without a word, and it may be what was meant.",
        "Here is my reply: <function=noop></function>",
        "Send the block alone, with each value inside its own parameter.",
    ),
)
