"""Secrets are found in every supported surrounding, whatever the secret is, in time linear in the text."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from typing import Any, Final

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capo.redaction import MAX_TEXT, redact

EXAMPLES: Final = os.environ.get("REDACTION_EXAMPLES")
fuzzed: Final = settings(
    max_examples=int(EXAMPLES or "300"),
    derandomize=not EXAMPLES,  # who asks for a number of them searches
    deadline=None,  # a slow machine is no fault; the growth is tested below
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
PRINTABLE: Final = st.characters(
    min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=("Cs", "Zl", "Zp", "Cc", "Cf")
)
MARK: Final = "S3CRET"
"""In the middle of each secret, so that a partial leak is detected as well."""


def secrets_of(characters: Any, *, least: int = 0) -> st.SearchStrategy[str]:
    text = st.text(characters, min_size=least, max_size=12)
    return st.builds(lambda before, after: f"{before}{MARK}{after}{MARK}", text, text)


SIMPLE: Final = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_.~"
ANY: Final = secrets_of(PRINTABLE)
WORD: Final = secrets_of(SIMPLE)
NAMES: Final = st.sampled_from(
    ("password", "passwd", "adminPass", "token", "user_data", "userData", "private_key", "clouds.yaml", "secret")
)
PREFIXED: Final = st.sampled_from(("os_password", "application_credential_secret", "client_secret", "OS_TOKEN"))
PLAIN_NAMES: Final = st.sampled_from(["password", "passwd", "application_credential_secret", "OS_PASSWORD", "token"])
HEADERS: Final = st.sampled_from(["X-Auth-Token", "x-subject-token", "Authorization", "X-SERVICE-TOKEN"])
HARMLESS: Final = st.text(" abcxyz.,;:-!()[]{}<>\n0123456789é", max_size=40)


def nested(value: Any, depth: int) -> str:
    """Return JSON in JSON."""
    text = json.dumps(value)
    for _ in range(depth):
        text = json.dumps({"body": text})
    return text


def hidden(text: str) -> None:
    assert MARK not in redact(text), redact(text)
    assert MARK not in redact(redact(text))


@fuzzed
@given(name=NAMES | PREFIXED, secret=ANY, depth=st.integers(0, 4), around=HARMLESS)
def test_a_secret_in_json_in_json_is_hidden(name: str, secret: str, depth: int, around: str) -> None:
    hidden(around + nested({"a": around, name: secret, "z": {name: secret}}, depth) + around)


@fuzzed
@given(name=NAMES | PREFIXED, secret=ANY, around=HARMLESS)
def test_a_secret_in_the_repr_of_a_dict_is_hidden(name: str, secret: str, around: str) -> None:
    hidden(f"{around}{ {'a': around, name: secret} }{around}")
    hidden(f"{around}{ {name.encode(): secret.encode()} }{around}")
    hidden(f"{around}{ {'body': str({name: secret})} }{around}")


@pytest.mark.parametrize(
    "secret", ["B'B'S3CRETS3CRET", "u'a' S3CRETS3CRET", 'b"x"S3CRETS3CRET', "rb'S3CRET'\n      S3CRET"]
)
@pytest.mark.parametrize("key", ["password", "  - password"])
def test_a_value_of_yaml_that_begins_like_bytes_of_python_is_hidden_to_its_end(key: str, secret: str) -> None:
    assert "S3CRET" not in redact(f"auth_url: https://a/v3\n{key}: {secret}\nx: y")
    assert redact(f"{key}: {secret}\nx: y").endswith("\nx: y")


@fuzzed
@given(name=PLAIN_NAMES, secret=ANY, style=st.sampled_from([None, "'", '"', "|", ">"]), around=HARMLESS)
def test_a_secret_in_yaml_is_hidden(name: str, secret: str, style: Any, around: str) -> None:
    document = {
        "clouds": {"one": {"auth": {"auth_url": "https://a/v3", name: secret, "x": "y"}, "z": [{name: secret}]}}
    }

    text = yaml.dump(document, default_style=style, allow_unicode=True)
    text = yaml.dump(document, allow_unicode=True, width=20) if style is None else text

    hidden(text)
    hidden(json.dumps({"clouds.yaml": text}))
    hidden(str({"clouds.yaml": text.encode()}))


@fuzzed
@given(name=PLAIN_NAMES, secret=WORD, around=HARMLESS, sign=st.sampled_from(["=", ": ", " = ", ":"]))
def test_a_secret_after_its_name_is_hidden(name: str, secret: str, around: str, sign: str) -> None:
    hidden(f"{around}\n{name}{sign}{secret} {around}")
    hidden(f"{around} {name}{sign}{secret}&user=me {around}")
    hidden(f"{around} {name}{sign}'{secret}', {around}")


@fuzzed
@given(name=HEADERS, secret=WORD, scheme=st.sampled_from(["", "Bearer ", "Basic ", "Token "]), around=HARMLESS)
def test_a_secret_in_a_header_is_hidden(name: str, secret: str, scheme: str, around: str) -> None:
    value = scheme + secret if name == "Authorization" else secret

    hidden(f"{around}{' '}{name}: {value}\r\n{around}")
    hidden(f"{around} curl -H '{name}: {value}' http://nova {around}")
    hidden(f'{around} -H "{name}: {value}" {around}')
    hidden(f"{around}{ {name: value} }{around}")
    hidden(f"{around}{[(name, value)]}{around}")
    hidden(f"{around}{[(name.encode(), value.encode())]}{around}")


@fuzzed
@given(secret=WORD, around=HARMLESS)
def test_a_secret_that_is_known_by_its_look_is_hidden(secret: str, around: str) -> None:
    word = secret.replace(".", "-").replace("~", "_")

    hidden(f"{around} Bearer {secret} {around}")
    hidden(f"{around} basic {base64.b64encode(word.encode()).decode()}{MARK} {around}")
    hidden(f"{around} gAAAAAB{word}{'x' * 20} {around}")
    hidden(f"{around} eyJ{'x' * 10}{word}.{word}.{word} {around}")
    hidden(f"{around} http://user:{word}@proxy:3128/ {around}")
    hidden(f"{around} http://user:p@{word}@proxy:3128/ {around}")
    hidden(f"{around}-----BEGIN EC PRIVATE KEY-----\n{word}\n-----END EC PRIVATE KEY-----{around}")
    hidden(json.dumps(f"{around}-----BEGIN PRIVATE KEY-----\n{word}\n-----END PRIVATE KEY-----\n{around}"))


@fuzzed
@given(name=NAMES | PREFIXED, secret=ANY, depth=st.integers(0, 3), shown=st.integers(0, 12))
def test_a_secret_that_was_cut_is_hidden_to_the_end(name: str, secret: str, depth: int, shown: int) -> None:
    text = nested({name: secret}, depth)
    at = text.index(MARK) + len(MARK) + shown

    hidden(text[:at])


@pytest.mark.parametrize(
    "text",
    [
        f'{{"password": "{MARK} {MARK}"}}',
        f"http://user:{MARK}xxxxxxxxxxxxxxxx@proxy/",
        f"token gAAAAAB{MARK}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        f"Bearer {MARK}xxxxxxxxx",
        f"-----BEGIN PRIVATE KEY-----\n{MARK}\n-----END PRIVATE KEY-----",
        f"eyJ{MARK}xxxxxxxxxxxxxxxxxxxxx.{MARK}.{MARK}",
    ],
)
def test_no_part_of_a_secret_is_shown_where_a_text_is_too_long(text: str) -> None:
    whole = text.index(MARK) + len(MARK)

    for kept in range(whole, len(text) + 1):
        padding = " " * (MAX_TEXT - kept)
        assert MARK not in redact(f"{padding}{text}{' more' * 100}"), kept


@pytest.mark.parametrize("name", ["user_data", "adminPass"])
def test_what_nova_quotes_of_a_value_that_it_refuses_is_hidden(name: str) -> None:
    hidden(f"Invalid input for field/attribute {name}. Value: {MARK} x. '{MARK} x' is too long")


@fuzzed
@given(text=st.text(max_size=300))
def test_any_text_can_be_redacted_and_redacting_again_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once) == once


@fuzzed
@given(text=st.text("abc xyz.,()é0123456789-_/", max_size=200))
def test_text_without_a_name_and_the_look_of_a_secret_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_a_long_text_says_how_much_of_it_is_missing() -> None:
    shown = redact("word " * MAX_TEXT)

    assert len(shown) < MAX_TEXT + 50
    assert shown.endswith(" more characters)")


HOSTILE: Final = [
    '"password":"' + "\\" * 8,
    '"password":"',
    '\\"password\\":\\"',
    "\\",
    '"',
    "'",
    "''",
    '\\"',
    "password='''",
    'password="\\',
    "password:",
    "password: |\n",
    "\n password:\n",
    "password" + " " * 50,
    "a_" * 10,
    "eyJ-",
    "eyJ",
    "eyJxxxxxxxxxxxx.",
    "gAAAAA",
    "gAAAAAxxxxxxxxxxxxxxxxxxxxxxxx",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\n-----END ",
    "://",
    "://a:",
    "://a:b@",
    "://a:" + "b" * 40,
    "bearer ",
    "basic\t",
    "authorization: ",
    "'x-auth-token', '",
    "x-auth-token",
    "user_data. Value: ",
    " ",
    "\n",
    "\n ",
    "{",
    "_password",
    "clouds.yaml: ",
    "secret: ",
]
GROWTH: Final = """
import json, sys, time
from capo import redaction
redaction.MAX_TEXT = 10**9
pattern, sizes = sys.stdin.read(), (2**11, 2**17)
for size in sizes:
    text = (pattern * size)[:size]
    began = time.process_time()
    redaction.redact(text)
    print(json.dumps(time.process_time() - began), flush=True)
"""


@pytest.mark.parametrize("pattern", HOSTILE)
def test_the_time_is_linear_in_the_text_whatever_it_repeats(pattern: str) -> None:
    # Processor time in a process of its own: 64 times the text takes some 20 ms, and minutes if the time were squared.
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], input=pattern, capture_output=True, text=True, timeout=120, check=True
    )
    _, long_s = map(json.loads, done.stdout.split())

    assert long_s < 10


@settings(fuzzed, max_examples=50)
@given(pattern=st.text("\\\"'{}:=,|>-_@/ \n\tapswordtkeyJBGINPRVATKY.~", min_size=1, max_size=24))
def test_no_text_of_signs_and_names_takes_long(pattern: str) -> None:
    # 32 KiB each, which take some 10 ms, and a minute if the time were squared, so that the limit may be wide.
    text = (pattern * MAX_TEXT)[:MAX_TEXT]
    began_s = time.process_time()

    redact(text)

    assert time.process_time() - began_s < 20
