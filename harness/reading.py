"""The one reader of answers: the last well-formed answer of the declared format, wherever it stands.

Every arm's answer is read here, so that no arm gains by its form. `strict` says whether the strict reading, the whole text
and nothing else, would have given the same value. Linear in the text; never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from harness.records import Format, Reading

_LABEL = r"(?:final\s+)?answer"
_LINE = re.compile(rf"^[ \t>*_#`-]*{_LABEL}[ \t*_`]*[:=][ \t*_`]*(\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_CHOICE = re.compile(
    rf"^[ \t>*_#`-]*(?:{_LABEL}[ \t*_`]*[:=]?[ \t*_`]*)?[(\[]?([A-J])[)\].:]?[ \t*_`.]*$", re.IGNORECASE | re.MULTILINE
)
_FENCE = re.compile(r"^```[^\n`]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_TRIM = " \t\r*_`"
NESTING = 60
"""Deepest JSON that is read; more is not an answer."""


def read(text: str, format: Format) -> Reading:
    """The answer that a text holds; `value` is None where nothing is well-formed."""
    value = _READERS[format](text)
    strict = value is not None and _STRICT[format](text) == value
    return Reading(format=format, value=value, strict=strict)


def _line(text: str) -> str | None:
    found = _LINE.findall(text)
    return found[-1].strip(_TRIM) or None if found else None


def _strict_line(text: str) -> str | None:
    match = re.fullmatch(rf"{_LABEL}: *(\S[^\n]*)", text.strip(), re.IGNORECASE)
    return match[1].strip() if match else None


def _choice(text: str) -> str | None:
    found = _CHOICE.findall(text)
    return found[-1].upper() if found else None


def _strict_choice(text: str) -> str | None:
    match = re.fullmatch(r"(?:answer: *)?([A-J])", text.strip(), re.IGNORECASE)
    return match[1].upper() if match else None


def _code(text: str) -> str | None:
    found = _FENCE.findall(text)
    return (found[-1].strip("\n") or None) if found else None


def _strict_code(text: str) -> str | None:
    match = re.fullmatch(r"```[^\n`]*\n(.*?)\n?```", text.strip(), re.DOTALL)
    return match[1].strip("\n") if match else None


def _text(text: str) -> str | None:
    return text.strip() or None


def _canonical(value: object) -> str | None:
    return json.dumps(value, sort_keys=True, ensure_ascii=True) if isinstance(value, dict | list) else None


def _strict_json(text: str) -> str | None:
    try:
        return _canonical(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _json(text: str) -> str | None:
    """The last outermost object or array that parses; one pass over the text finds the candidates."""
    for start, end in reversed(_spans(text)):
        value = _strict_json(text[start:end])
        if value is not None:
            return value
    return None


def _spans(text: str) -> list[tuple[int, int]]:
    """Balanced, outermost {...} and [...] spans, brackets inside JSON strings skipped. A closer that does not fit starts anew."""
    spans: list[tuple[int, int]] = []
    stack: list[tuple[str, int]] = []
    in_string = escaped = False
    deepest = 0
    for position, character in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"' or character == "\n":
                in_string = False
        elif character == '"':
            in_string = bool(stack)
        elif character in "{[":
            stack.append((character, position))
            deepest = max(deepest, len(stack))
        elif character in "}]":
            if stack and stack[-1][0] == {"}": "{", "]": "["}[character]:
                _, start = stack.pop()
                if deepest <= NESTING:
                    _keep_outer(spans, start)
                    spans.append((start, position + 1))
                deepest = len(stack) if not stack else deepest
            else:
                stack, deepest = [], 0
    return spans


def _keep_outer(spans: list[tuple[int, int]], start: int) -> None:
    """Drop the spans that a wider one, beginning at `start`, holds."""
    while spans and spans[-1][0] >= start:
        spans.pop()


_READERS: dict[Format, Callable[[str], str | None]] = {
    "line": _line,
    "json": _json,
    "code": _code,
    "choice": _choice,
    "text": _text,
}
_STRICT: dict[Format, Callable[[str], str | None]] = {
    "line": _strict_line,
    "json": _strict_json,
    "code": _strict_code,
    "choice": _strict_choice,
    "text": _text,
}
