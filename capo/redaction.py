r"""Replaces secrets in texts that are logged, sent as Events or written into conditions; one pass, linear in the text.

The texts are those of tenants and of the clouds that they choose, so the work on them is bounded: a text is cut to
``MAX_TEXT`` characters first, and no character is read again once it was passed. A regular expression only finds where
a secret begins; where it ends is found by a function that always succeeds: a secret that is not closed goes to the end.

What is found, in any letter case:

* values of the names in ``_NAMES``, also behind a prefix as in ``os_password``, and of the headers in ``_HEADERS``:
  quoted, in JSON inside JSON (as ``\\\"`` of any depth), ``repr`` of dicts and bytes, YAML, ``name=value``
* ``Bearer`` and ``Basic`` credentials, Fernet tokens, JSON Web Tokens, private keys in PEM
* passwords in URLs
* what Nova quotes of user data and passwords that it refuses
"""

from __future__ import annotations

import re
from typing import Final

MAX_TEXT: Final = 32768
"""Characters of a text that are shown; a condition's message has no more (CustomResourceDefinitions, ``message``)."""
MASK: Final = "***"

_NAMES: Final = r"password|passwd|secret|token|user_?data|private_key|adminPass|clouds\.yaml"
_HEADERS: Final = "x-auth-token|x-subject-token|x-service-token|authorization"
_QUOTE: Final = r"""\\{0,31}["']"""
"""A quote, escaped by 31 backslashes when it is in JSON in JSON in JSON in JSON in JSON in JSON."""
_START: Final = re.compile(
    rf"(?<![^\W_])(?:(?P<header>(?i:{_HEADERS}))|(?P<name>(?i:{_NAMES})))"
    rf"(?:(?P<nova>\. Value: )|(?P<quote>{_QUOTE})?\s*(?P<separator>[:=,]))"
    r"|\b(?i:bearer|basic)\s+(?P<credential>[A-Za-z0-9._~+/=-]{8,})"
    r"|\b(?P<fernet>gAAAAA[A-Za-z0-9_-]{20,}={0,2})"
    r"|\b(?P<jwt>eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,4})"
    r"|(?P<pem>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)"
    r"|://[^/\s:@]*(?P<url>:)"
)
_PEM_END: Final = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY-----")
_OPENING: Final = re.compile(rf"\s*(?P<prefix>(?i:[bru]{{0,2}}))(?P<quote>{_QUOTE})")
_BLANK: Final = re.compile(r"\s*")
_IN_AUTHORITY: Final = re.compile(r"[^/\s]*")
_IN_AUTHORIZATION: Final = re.compile(r"""[^\n"',;}]*""")
_IN_HEADER: Final = re.compile(r"""[^\s,;"'}]*""")
_IN_VALUE: Final = re.compile(r"[^\s,;}]*")
_INDENT: Final = re.compile(r"""(?P<indent>[ \t]*(?:-[ \t]{1,8})?)["']?\w*""")
_OPAQUE: Final = re.compile(r"[ \t]*(?:[|>]|[A-Za-z0-9+/=]{40})")
"""A block of YAML, or possibly base64."""
_OFTEN_WORDS: Final = frozenset({"secret", "clouds.yaml"})
"""Names that occur in sentences before a colon; without quotes only opaque values of them are secret."""
_CONFIDENTIAL: Final = re.compile(rf"(?i:(?:\w*_)?(?:{_NAMES})|{_HEADERS})")
_UNBROKEN: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-"
"""The characters of tokens, and of passwords in URLs."""
_LOOK_BACK: Final = 128
"""Characters before a name in which its line must begin, for the line to count as YAML."""

_Span = tuple[int, int]


def is_confidential(name: str) -> bool:
    """Return whether a field of this name holds a secret."""
    return len(name) <= MAX_TEXT and _CONFIDENTIAL.fullmatch(name) is not None


def redact(text: str) -> str:
    """Return the text without tokens, passwords, keys and user data, cut to ``MAX_TEXT`` characters."""
    shown = _cut(text)
    is_cut = len(shown) < len(text)
    kept: list[str] = []
    at = 0
    while found := _START.search(shown, at):
        begin, end = _secret(shown, found, is_cut=is_cut)
        kept += (shown[at:begin], MASK) if begin < end else (shown[at:end],)
        at = end
    more = f"... ({len(text) - len(shown)} more characters)" if is_cut else ""
    return f"{''.join(kept)}{shown[at:]}{more}"


def _cut(text: str) -> str:
    """Return the beginning of a text that is too long, without its last token, whose end may be cut off."""
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT].rstrip(_UNBROKEN)


def _secret(text: str, found: re.Match[str], *, is_cut: bool) -> _Span:
    """Return the span of the secret that begins here; an empty span at or after the match if there is none."""
    for name in ("credential", "fernet", "jwt"):
        if found[name]:
            return found.span(name)
    if found["pem"]:
        closed = _PEM_END.search(text, found.end())
        return found.start(), closed.end() if closed else len(text)
    if found["url"]:
        return _of_url(text, found.end(), is_cut=is_cut)
    if found["nova"]:
        return found.end(), len(text)
    return _of_name(text, found)


def _of_url(text: str, begin: int, *, is_cut: bool) -> _Span:
    """Return the password of a URL: all before the last ``@`` of the authority."""
    end = _end_of(_IN_AUTHORITY, text, begin)
    if (at := text.rfind("@", begin, end)) >= 0:
        return begin, at
    return (begin, end) if is_cut and end == len(text) else (begin, begin)


def _of_name(text: str, found: re.Match[str]) -> _Span:
    """Return the span of the value after a name or header."""
    after = found.end()
    if _is_word(text, found):
        return after, after
    opening = _OPENING.match(text, after)
    # A plain value of YAML may begin like the repr of bytes: B'B'secret.
    if opening and not (opening["prefix"] and _yaml_indent(text, found) is not None):
        return opening.end(), _closing(text, opening.end(), opening["quote"])
    return _unquoted(text, found, after)


def _unquoted(text: str, found: re.Match[str], after: int) -> _Span:
    begin = _end_of(_BLANK, text, after)
    if found["quote"] and text.startswith(("{", "["), begin):
        return after, after
    if (indent := _yaml_indent(text, found)) is not None:
        return _of_yaml(text, after, indent)
    run = _IN_VALUE
    if found["header"]:
        run = _IN_AUTHORIZATION if found["header"].lower() == "authorization" else _IN_HEADER
    return begin, _end_of(run, text, begin)


def _is_word(text: str, found: re.Match[str]) -> bool:
    """Return whether a name has no value: it is the word of a sentence."""
    if found["separator"] == ",":
        return not (found["header"] and found["quote"])  # which may be a header in a tuple
    if found["quote"]:
        return False
    if str(found["name"]).lower() not in _OFTEN_WORDS or text.startswith("_", max(0, found.start() - 1)):
        return False
    return _OPAQUE.match(text, found.end()) is None


def _end_of(run: re.Pattern[str], text: str, begin: int) -> int:
    found = run.match(text, begin)
    return found.end() if found else begin


def _closing(text: str, begin: int, quote: str) -> int:
    r"""Return where the closing quote of a string stands, with its backslashes; the end of the text without one.

    In a string whose own quotes have ``k`` backslashes, one that belongs to the text has ``2k + 1``, and a backslash of
    the text is ``2 (k + 1)`` of them. A doubled single quote is YAML's for one.
    """
    mark, level = quote[-1], len(quote) - 1
    since, at = begin, text.find(mark, begin)
    while at >= 0:
        stretch = text[since:at]
        before = len(stretch) - len(stretch.rstrip("\\"))
        is_doubled = quote == "'" and text.startswith(mark, at + 1)
        if before >= level and (before - level) % (2 * (level + 1)) == 0 and not is_doubled:
            return at - level
        since = at + 2 if is_doubled else at + 1
        at = text.find(mark, since)
    return len(text)


def _yaml_indent(text: str, found: re.Match[str]) -> int | None:
    """Return the indentation of the line of YAML whose key the name is; None if it is none."""
    return _indent(text, found.start()) if found["separator"] == ":" else None


def _indent(text: str, at: int) -> int | None:
    """Return the indentation of the line that begins with the name; None if the name is not the first word."""
    line = text.rfind("\n", max(0, at - _LOOK_BACK), at) + 1
    if line == 0 and at > _LOOK_BACK:
        return None
    found = _INDENT.fullmatch(text, line, at)
    return len(found["indent"]) if found else None


def _of_yaml(text: str, after: int, indent: int) -> _Span:
    """Return the value of a line of YAML, with the following lines that are indented further."""
    end = _end_of_line(text, after)
    while end < len(text):
        begin = end + 1
        word = _end_of(_BLANK, text, begin)
        line = text.rfind("\n", begin, word) + 1 or begin
        if word == len(text) or word - line <= indent:
            break
        end = _end_of_line(text, word)
    return min(_end_of(_BLANK, text, after), end), end


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end
