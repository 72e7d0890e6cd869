"""Named values: what stands beside the name of a secret is masked, and source code stays readable."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchgate.ledger import masking
from patchgate.ledger.masking import MOST_VALUE, Masks, named_values
from tests.amount import often

MASKED = [
    ("password=hunter2", "password=***"),
    ("password = hunter2", "password = ***"),
    ("PASSWORD: hunter2", "PASSWORD: ***"),
    ('"password": "hunter2"', '"password": "***"'),
    ("'password': 'hunter2 with spaces'", "'password': '***'"),
    ('password="hunter2 with spaces" x', 'password="***" x'),
    ('password="""hunter2"""', 'password="""***"""'),
    ('token="hunter2 without an end', 'token="***'),
    ("DB_PASSWORD='hunter2'", "DB_PASSWORD='***'"),
    ("AWS_SECRET_ACCESS_KEY=hunter2/K7MDENG+x=", "AWS_SECRET_ACCESS_KEY=***"),
    ("export GITHUB_TOKEN=hunter2", "export GITHUB_TOKEN=***"),
    ("SECRET_KEY = 'hunter2'", "SECRET_KEY = '***'"),
    ("SMTP_PASS=hunter2", "SMTP_PASS=***"),
    ("pwd=hunter2", "pwd=***"),
    ("passwd: hunter2", "passwd: ***"),
    ("passphrase=hunter2 of several words", "passphrase=***"),
    ("client_secret=hunter2", "client_secret=***"),
    ("api_key=hunter2 apikey: hunter2 api-key=hunter2", "api_key=*** apikey: *** api-key=***"),
    ("X-Api-Key: hunter2", "X-Api-Key: ***"),
    ("private_key=hunter2, access_key=hunter2", "private_key=***, access_key=***"),
    ('accessToken: "hunter2",', 'accessToken: "***",'),
    ("token => 'hunter2'", "token => '***'"),
    ('token: str = "hunter2"', 'token: str = "***"'),
    ('password += "hunter2"', 'password += "***"'),
    ('assert password == "hunter2"', 'assert password == "***"'),
    ('os.environ["TOKEN"] = "hunter2"', 'os.environ["TOKEN"] = "***"'),
    ("connect(password=hunter2)", "connect(password=***)"),
    ("--password hunter2 --user me", "--password *** --user me"),
    ("--password=hunter2", "--password=***"),
    ('--api-key "hunter2 x" y', '--api-key "***" y'),
    ('["--password", "hunter2"]', '["--password", "***"]'),
    ("'--password' 'hunter2'", "'--password' '***'"),
    (r"{\"password\": \"hunter2 \\\" x\", \"a\": 1}", r"{\"password\": \"***\", \"a\": 1}"),
    (r'{"log": "password=hunter2\nnext"}', r'{"log": "password=***\nnext"}'),
    ("Authorization: Bearer hunter2", "Authorization: Bearer ***"),
    ("authorization: Basic aHVudGVyMg==", "authorization: Basic ***"),
    ('{"Authorization": "Bearer hunter2"}', '{"Authorization": "Bearer ***"}'),
    ('curl -H "Authorization: token hunter2" u', 'curl -H "Authorization: token ***" u'),
    ("Cookie: a=hunter2; b=hunter2", "Cookie: ***"),
    ("Set-Cookie: sid=hunter2; Path=/", "Set-Cookie: ***"),
    ("auth=hunter2", "auth=***"),
    ("https://h/?access_token=hunter2&x=1", "https://h/?access_token=***"),
    ("password=x(y)hunter2", "password=***"),
    ("PASSWORD=${X:-hunter2}", "PASSWORD=***}"),
    ("password=pre$hunter2", "password=***"),
    ("password=hunter2,and;more", "password=***"),
    ("password=supersecret", "password=***"),
    ("password=12345678", "password=***"),
    ("password=***hunter2", "password=***"),
]
READABLE = [
    "password = None",
    '"password": null,',
    "password: true",
    "token: str",
    'token: str = ""',
    "token: Optional[str] = None",
    "token = next(tokens)",
    "self.token = token",
    "token = self._token",
    "self.token = self.lexer.next_token()",
    "password=password",
    "password: SecretStr",
    'password = getpass("Password: ")',
    'api_key = os.environ["API_KEY"]',
    'api_key = os.environ.get("API_KEY")',
    "const apiKey = process.env.API_KEY;",
    "config.secret_key = settings.SECRET_KEY",
    'token = request.headers["X-Token"]',
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "TOKEN=$TOKEN",
    'TOKEN="$GITHUB_TOKEN"',
    "password=${DB_PASSWORD}",
    "password=***",
    "password: <redacted>",
    "password=%s",
    'password="{password}"',
    'headers = {"Authorization": f"Bearer {token}"}',
    "password=abc",
    "max_tokens=5000",
    "tokenizer = Tokenizer()",
    "author: somebody",
    "if token == expected_value:",
    "PWD=/home/me",
    "cat: /etc/passwd: Permission denied",
    "test_token::test_x PASSED",
    "tests/test_token.py:12: AssertionError",
    "primary_key=True_value",
    "key: value_of_it",
    "--token TOKEN  the token",
    "[--password PASSWORD]",
    "--password-file /etc/some",
    "class Token: pass",
    "secrets: inherit",
    "error[secret]: something was found",
    "    password: string;",
    "token: {",
]


@pytest.mark.parametrize(("before", "after"), MASKED)
def test_the_value_beside_the_name_of_a_secret_is_masked(before: str, after: str) -> None:
    assert Masks().text(before) == after
    assert Masks().text(f"x {before}\ny\n") == f"x {after}\ny\n"
    # What was masked once is masked again without a change.
    assert Masks().text(after) == after


@pytest.mark.parametrize("text", READABLE)
def test_what_is_plainly_no_value_stays_readable(text: str) -> None:
    assert Masks().text(text) == text


@pytest.mark.parametrize(
    "hidden",
    [
        "\x1b[1mpassword\x1b[0m=\x1b[31mhunter2\x1b[m",
        "pass\x00word=hunter2",
        "pass\x08word=hunter2",
        "pass\u202eword=hunter2",
        "pass\u200bword=hunter2",
        "pass\x1bPa string\x1b\\word=hunter2",
        "pass\x9b1mword=hunter2",
    ],
)
def test_a_name_with_controls_between_its_letters_is_found(hidden: str) -> None:
    masked = Masks().output(f"before\n{hidden}\nafter\n".encode())
    assert masked == b"before\npassword=***\nafter\n"


def test_a_json_text_that_is_masked_stays_json() -> None:
    text = json.dumps({"password": 'a "quoted" \\ one', "auth": "x1y2z3", "list": ["--token", "abcdef"]})
    told = json.loads(Masks().text(text))
    assert told == {"password": "***", "auth": "***", "list": ["--token", "***"]}
    inner = json.loads(json.loads(Masks().text(json.dumps(text))))
    assert inner["password"] == "***"


@settings(max_examples=often(200), deadline=None)
@given(
    name=st.sampled_from(["password", "API_KEY", "authToken", "client-secret", "x_passphrase"]),
    form=st.sampled_from(['{}="{}"', "{}: '{}'", "{}={}", '"{}": "{}"', "--{} {}", "-H '{}: {}' u"]),
    value=st.text("abcXYZ019+/=_.-!", min_size=6, max_size=40).map(lambda each: f"q7{each}7q"),
    around=st.text(max_size=20),
)
def test_no_random_value_beside_a_name_is_left(name: str, form: str, value: str, around: str) -> None:
    masked = Masks().text(f"{around}\n{form.format(name, value)}\n{around}")
    assert value not in masked
    assert "***" in masked


# ---- what it costs ---------------------------------------------------------------------------------------

COSTLY = [
    "password=",
    "password=abc ",
    "password=abcdef ",
    'password="',
    r"token=\"",
    r"token=\"abc\\",
    "token=next(",
    "token=a[",
    "token=a.",
    "passwordpassword",
    "--token ",
    "key",
    "api_key: ",
    "secret='a\\'",
    'secret="""',
    "auth: ;;;;",
    "cookie: a",
    "token=${{ ",
    "token=((((((((",
    "passphrase=Bearer ",
]


def steps(content: bytes) -> int:
    """Count the calls that a search makes; each is a bounded step, or a search that ends at its finding."""
    taken = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal taken
        taken += event in {"call", "c_call"}

    before = sys.getprofile()
    # A collection calls what others have registered for it.
    gc.disable()
    sys.setprofile(count)
    try:
        found = list(named_values(content))
    finally:
        sys.setprofile(before)
        gc.enable()
    return taken - len(found)


@pytest.mark.parametrize("costly", COSTLY)
def test_twice_the_text_takes_twice_the_steps(costly: str) -> None:
    one = steps(costly.encode() * 2000)
    assert steps(costly.encode() * 4000) <= 2 * one + 100


def _repeats(parsed: Any) -> Iterator[int]:
    for operation, argument in parsed:
        name = str(operation)
        if name.endswith("REPEAT"):
            yield int(argument[1])
        for each in argument if isinstance(argument, (tuple, list)) else (argument,):
            inner = each if isinstance(each, list) else [each]
            for one in inner:
                if isinstance(one, _parser.SubPattern):
                    yield from _repeats(one)


def test_every_expression_is_bounded() -> None:
    expressions = [each for each in vars(masking).values() if isinstance(each, re.Pattern)]
    expressions += masking._INSIDE.values()
    assert len(expressions) >= 15
    for each in expressions:
        repeats = list(_repeats(_parser.parse(each.pattern, each.flags)))
        bounded = [most for most in repeats if most > MOST_VALUE]
        # A placeholder of stars alone is matched against at most 200 letters; the others end where they could
        # begin anew, or read one value of the environment.
        is_known = each in {masking._PLACEHOLDER, masking._LOGIN, masking._ADDRESS, masking._NAME}
        assert not bounded or is_known, each.pattern
