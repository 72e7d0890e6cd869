"""Masking: what looks like a secret is gone, the rest is as it was, and a long log costs its length."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.ledger.masking import MASK, Masks, secret_values
from patchgate.policy.content_rules import SECRET_FORMS
from patchgate.storage.record import Json
from tests.amount import often

GITHUB = b"ghp_" + b"A1b2" * 9
KEY = (
    b"-----BEGIN RSA PRIVATE KEY-----\n"
    + b"MIIEowIBAAKCAQEA7bq4c1fV0vW5w0aP9q3r/+Zk\n" * 20
    + b"aGVsbG8=\n-----END RSA PRIVATE KEY-----"
)
# One example of each form, so that a new form needs one here.
EXAMPLES = {
    "private key": KEY,
    "AWS access key": b"AKIA" + b"ABCDEFGH" * 2,
    "GitHub token": GITHUB,
    "GitLab token": b"glpat-" + b"a1B2c" * 4,
    "Slack token": b"xoxb-123456789012-abcdefghijkl",
    "Slack webhook": b"hooks.slack.com/services/T12345678/B12345678/" + b"abcd" * 5,
    "Stripe key": b"sk_live_" + b"a1B2c" * 4,
    "Google API key": b"AIza" + b"abcde" * 7,
    "npm token": b"npm_" + b"a1B2" * 9,
    "PyPI token": b"pypi-AgEI" + b"abcdef" * 10,
    "SendGrid key": b"SG." + b"ab" * 11 + b"." + b"a" * 43,
    "OpenAI key": b"sk-" + b"a" * 20 + b"T3BlbkFJ" + b"b" * 20,
    "Anthropic key": b"sk-ant-api03-" + b"a" * 80,
    "Vault token": b"hvs." + b"abcd" * 6,
    "Azure storage key": b"AccountKey=" + b"a" * 86 + b"==",
}


@pytest.mark.parametrize("form", [form.name for form in SECRET_FORMS])
def test_every_form_of_credential_that_the_content_gate_knows_is_masked(form: str) -> None:
    secret = EXAMPLES[form]
    masked = Masks().raw(b"before " + secret + b" after\n")
    assert masked == b"before *** after\n"


def test_a_text_without_secrets_comes_back_as_it_is() -> None:
    content = b"nothing \x00\xff to hide\r\n"
    assert Masks([{"API_TOKEN": "hunter2hunter2"}]).raw(content) is content
    assert Masks().text("caf\udce9 \ud800") == "caf\udce9 \ud800"


def test_of_a_private_key_the_body_goes_too_also_in_a_diff_in_json_and_without_its_end() -> None:
    body = b"MIIEowIBAAKCAQEA7bq4c1fV0vW5w0aP9q3r"
    as_diff = b"".join(b"+" + line + b"\n" for line in KEY.split(b"\n"))
    in_json = json.dumps({"key": KEY.decode()}).encode()
    cut = KEY[:600]
    for shown in (KEY, as_diff, in_json, cut, b"log: " + cut + b"\nthe next line stays\n"):
        masked = Masks().raw(shown)
        assert body not in masked
        assert MASK in masked
    assert Masks().raw(cut + b"\nthe next line stays\n").endswith(b"\nthe next line stays\n")
    assert Masks().raw(as_diff + b"+rest\n").endswith(b"***\n+rest\n")


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "token",
        "NPM_AUTHTOKEN",
        "API_TOKENS",
        "SECRET_KEY_BASE",
        "MY_SECRETS",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SMTP_PASS",
        "KEY_PASSPHRASE",
        "OPENAI_API_KEY",
        "OPENAI_APIKEY",
        "AWS_SECRET_ACCESS_KEY",
        "SIGNING_KEY",
        "GOOGLE_CREDENTIALS",
        "TOKEN2",
    ],
)
def test_the_value_of_a_variable_whose_name_says_that_it_is_secret_is_masked(name: str) -> None:
    assert Masks([{name: "hunter2"}]).raw(b"x=hunter2;") == b"x=***;"


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "OLD_PWD",
        "SSH_AUTH_SOCK",
        "TOKENIZERS_PARALLELISM",
        "GPG_KEYS",
        "COMPASS",
    ],
)
def test_another_variables_value_stays(name: str) -> None:
    assert Masks([{name: "/home/person"}]).raw(b"in /home/person") == b"in /home/person"


def test_a_value_of_five_characters_is_not_sought_and_one_of_six_is() -> None:
    assert Masks([{"TOKEN": "12345"}]).raw(b"12345") == b"12345"
    assert Masks([{"TOKEN": "123456"}]).raw(b"123456") == b"***"


def test_a_value_is_found_as_it_is_escaped_and_line_by_line() -> None:
    several = "first-line-of-it\nsecond-line-of-it"
    masks = Masks([{"SECRET": several}, {"PASSWORD": 'a"b\\c\x1bd'}])
    assert masks.raw(several.encode()) == MASK
    assert masks.raw(b"> second-line-of-it <") == b"> *** <"
    assert masks.text('a"b\\c\x1bd') == "***"
    assert masks.text('a"b\\c\\x1bd') == "***"


def test_of_overlapping_values_nothing_is_left_standing() -> None:
    masks = Masks([{"A_TOKEN": "abcdef", "B_TOKEN": "defghi", "C_TOKEN": "abcdefghij"}])
    assert masks.raw(b"-abcdefghi-abcdefghij-abcdefdefghi-") == b"-***-***-***-"


def test_in_a_document_only_the_texts_are_masked() -> None:
    masks = Masks([{"PASSWORD": "verdict", "TOKEN": "1234567"}])
    before: dict[str, Json] = {"verdict": ["a verdict", 1234567, None, True, {"x": "1234567"}]}
    assert masks.document(before) == {"verdict": ["a ***", 1234567, None, True, {"x": "***"}]}


def test_several_environments_count() -> None:
    assert Masks([{"TOKEN": "aaaaaa"}, {"TOKEN": "bbbbbb"}]).raw(b"aaaaaa bbbbbb") == b"*** ***"
    assert secret_values({"TOKEN": "aaaaaa"}) == (b"aaaaaa",)


def test_a_megabyte_that_nearly_is_a_secret_everywhere_is_masked_in_one_go() -> None:
    """No expression goes over a text twice; one that did would not end here in a lifetime."""
    masks = Masks([{"TOKEN": "a" * 40}])
    for text in (b"a" * 1_000_000, b"sk-" * 300_000 + b"T3BlbkFJ", b"-----BEGIN PRIVATE KEY-----\n" * 30_000):
        assert len(masks.raw(text)) <= len(text)
    spaces = b" " * 500_000
    assert masks.raw(spaces + b"-----BEGIN PRIVATE KEY-----" + spaces) == spaces + MASK + spaces


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"postgres://u:s3cr3t@h/db", b"postgres://u:***@h/db"),
        (b"x=redis://:pw@h:1/0;", b"x=redis://:***@h:1/0;"),
        (b"git+https://u:p@ss:w@h/x y@z", b"git+https://u:***@h/x y@z"),
        (b"https://u:a@h https://v:b@i", b"https://u:***@h https://v:***@i"),
        (b'"amqp://u:p\\x"@h"', b'"amqp://u:p\\x"@h"'),
        (b"https://u:caf\xc3\xa9@h", b"https://u:***@h"),
    ],
)
def test_the_password_in_an_address_is_masked_wherever_it_stands(before: bytes, after: bytes) -> None:
    assert Masks().raw(before) == after


@pytest.mark.parametrize(
    "text",
    [
        b"https://host:8080/@scope/pkg",
        b"ssh://git@host:22/x@y",
        b"http://[::1]:80/a@b",
        b"https://u:***@h",
        b"://u:p@h",
        b"std::a://",
        b"http://host:80 someone@example.com",
    ],
)
def test_an_address_without_a_password_stays(text: bytes) -> None:
    assert Masks().raw(text) is text


def test_the_password_in_an_address_of_the_environment_is_a_secret_by_itself() -> None:
    masks = Masks([{"DATABASE_URL": "postgres://user:s3cr%2Ft-value@h/db", "OTHER": "http://u:short@h"}])
    assert masks.raw(b"s3cr%2Ft-value, s3cr/t-value, user") == b"***, ***, user"
    # Five characters are too short to be sought alone, not to be masked in an address.
    assert masks.raw(b"short http://u:short@h") == b"short http://u:***@h"
    odd = Masks([{"BROKER": "amqp://u:with/slash#x@y@h/v"}])
    assert odd.raw(b"amqp://u:with/slash#x@y@h/v with/slash#x@y") == b"amqp://u:***@h/v ***"


def test_a_secret_with_escapes_of_a_terminal_inside_is_masked_and_other_lines_keep_theirs() -> None:
    masks = Masks([{"TOKEN": "s3cr3tvalue"}])
    hidden = b"\x1b[1ms3cr\x1b[0m3tvalue\x1b[m tail"
    colour = b"\x1b[31mred\x1b[0m"
    assert masks.output(colour + b"\n" + hidden + b"\n" + colour) == colour + b"\n*** tail\n" + colour
    # Found as it is: the escapes around it stay.
    assert masks.output(b"\x1b[1ms3cr3tvalue\x1b[m") == b"\x1b[1m***\x1b[m"
    assert masks.output(b"\x1b[1mAKIA" + b"ABCDEFGH" * 2) == b"***"
    assert masks.output(colour) == colour
    assert masks.output(b"\x1b]0;no end\n" + hidden) == b"\x1b]0;no end\n*** tail"


def test_a_private_key_of_coloured_lines_is_masked_whole() -> None:
    coloured = b"".join(b"\x1b[32m" + line + b"\x1b[0m\n" for line in KEY.split(b"\n"))
    assert Masks().output(b"before\n" + coloured + b"after\n") == b"before\n\x1b[32m***\x1b[0m\nafter\n"
    cut = coloured[: coloured.index(b"aGVsbG8=")]
    assert Masks().output(cut) == b"\x1b[32m***\x1b[0m\n\x1b[32m"


def test_a_megabyte_of_addresses_or_escapes_is_masked_in_one_go() -> None:
    masks = Masks([{"TOKEN": "s3cr3tvalue"}])
    many = 150_000
    for text in (
        b"://" * many,
        b"a://b:" * many,
        b"a://" + b"b:" * many,
        b"a://b:" + b"@" * many,
        b"a://u:pass@" * many,
    ):
        assert len(masks.raw(text)) <= len(text)
    for text in (b"\x1b[" * many, b"\x1b[0m\n" * many + b"s3cr\x1b[m3tvalue\n" * many, b"\x1b]" * many):
        masked = masks.output(text)
        assert len(masked) <= len(text)
        assert b"3tvalue" not in masked


_VALUES = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=6, max_size=30).filter(
    lambda each: len(each.strip()) >= 6
)


@settings(max_examples=often(200), deadline=None)
@given(values=st.lists(_VALUES, max_size=4), parts=st.lists(st.text(max_size=20), max_size=6), data=st.data())
def test_no_value_is_left_in_a_masked_text_and_what_is_changed_shows_it(
    values: list[str], parts: list[str], data: st.DataObject
) -> None:
    masks = Masks([{f"TOKEN_{number}": value for number, value in enumerate(values)}])
    pieces = [data.draw(st.sampled_from([*values, part])) for part in parts]
    text = "".join(pieces)
    masked = masks.text(text)
    assert not [value for value in values if value.strip() in masked]
    if masked != text:
        assert "***" in masked
