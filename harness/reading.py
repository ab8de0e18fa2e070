"""The one reader of answers: the last well-formed answer of the declared format, wherever it stands.

Every arm's answer is read here, so that no arm gains or loses by its form. What each format takes:

line    The last line that begins with `Answer:` and holds something after the colon. Case, a list or quote mark before it,
        Markdown emphasis and code marks around label, value or both, and a code fence do not matter, nor do lines after
        it. The value is the rest of the line, trimmed; a remark on the same line is a part of it and the checker's
        business (`number` reads `$29.00`, `29 apples` and `29 (in total)` as 29). The example `<answer>` is no answer.
json    The last object that parses, outermost, in a fence or in prose; the last array where no object stands outside of
        one. The value is its canonical JSON. NaN, infinities and nesting beyond 60 are not well-formed.
code    The last closed fenced block that is not empty. A block that never ends was cut; it is none.
choice  The last line that is one letter, `B`, `(B)` or `B.`, or that begins with `Answer: B`, followed by nothing, a
        mark such as `)`, `.`, `:` or `,`, a dash or a bracket (so not `Answer: A dog`). The value is the capital letter.
text    The whole text, trimmed, if any sign in it can be seen.

Lines end at a line feed, a carriage return, or both, and nowhere else: U+2028 or a form feed is text.
Linear in the text, and never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from harness.canonical import canonical
from harness.records import Format, Reading

NESTING = 60
"""Deepest JSON that is read; more is not an answer."""


class _Found(NamedTuple):
    """What a format's reader found: the value, and whether it is the whole text."""

    value: str
    strict: bool


def read(text: str, format: Format) -> Reading:
    """The answer that a text holds; `value` is None where nothing is well-formed.

    `strict` tells whether a reader that takes nothing but the whole trimmed text in exactly the declared form (`Answer: 29`,
    bare JSON, one fenced block, `B` or `Answer: B`) would have read the same value.
    """
    found = _READERS[format](re.sub(r"\r\n?", "\n", text).strip())
    return Reading(format=format, value=found.value if found else None, strict=bool(found and found.strict))


# --- line and choice -------------------------------------------------------------------------------------------------

# Quantifiers are possessive: without backtracking no text can make a pattern slow.
_MARKS = r"[*_`]*+"
_LEAD = r"[ \t]*+(?:(?:[>#]++[ \t]*+|(?:[-*+•]|\d++[.)])[ \t]++))*+"
_LABEL = re.compile(
    rf"{_LEAD}(?P<head>(?:{_MARKS}[ \t]*+(?:the[ \t]++)?+(?:final[ \t]++)?+answer(?:[ \t]++is)?+{_MARKS}[ \t]*+[:：][ \t]*+)++)",
    re.IGNORECASE,
)
_EMPHASIS = ("```", "**", "__", "`", "*", "_")
_PLACEHOLDERS = ("<answer>", "<letter>")
_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\]]?\.?")
_LABELLED_LETTER = re.compile(
    r"(?:(?:option|choice)[ \t]++)?+[(\[*_`]*+([A-Za-z])[*_`]*+(?=[)\].:,;]|[ \t]*[–—]|[ \t]+[-(]|$)", re.IGNORECASE
)


def _line(text: str) -> _Found | None:
    for line in reversed(text.split("\n")):
        value = _labelled(line)
        if value is not None:
            return _Found(value, text == f"Answer: {value}")
    return None


def _labelled(line: str) -> str | None:
    """The value of a line `Answer: value`, out of its Markdown; None where it is no such line, or has no value."""
    label = _LABEL.match(line)
    if label is None:
        return None
    head, value = label["head"], line[label.end() :].strip()
    for mark in _EMPHASIS:
        if head.count(mark) % 2:
            value = _close(value, mark)
        head = head.replace(mark, "")
    value = _unwrap(value)
    return value or None


def _close(value: str, mark: str) -> str:
    """Drop the mark that ends an emphasis which began before the value: at its start, at its end, or before a remark."""
    if value.startswith(mark):
        return value.removeprefix(mark).strip()
    if value.endswith(mark) or len(mark) == 1:
        return value.removesuffix(mark).strip()
    return value.replace(mark, "", 1)


def _unwrap(value: str) -> str:
    """Take off marks that enclose the whole value: emphasis, code, and the angle brackets of the form `<answer>`."""
    before = None
    while value != before:
        before = value
        if value.lower() in _PLACEHOLDERS:
            return ""
        for start, end in (*((mark, mark) for mark in ("```", "**", "`", "*")), ("<", ">")):
            inner = value[len(start) : -len(end)].strip()
            if value.startswith(start) and value.endswith(end) and inner and start not in inner and end not in inner:
                value = inner
    return "" if not value.strip("*_`") else value


def _choice(text: str) -> _Found | None:
    for line in reversed(text.split("\n")):
        value = _labelled(line)
        if value is None:
            match = _LETTER.fullmatch(_unwrap(line.strip()))
        else:
            match = _LABELLED_LETTER.match(value)
        if match:
            letter = match[1].upper()
            return _Found(letter, text in (letter, f"Answer: {letter}"))
    return None


# --- json ------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"[ \t\n]*+(?:"
    r'(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<atom>true|false|null|-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)"
    r"|(?P<mark>[{}\[\],:]))"
)
_OPEN = re.compile(r"[{\[]")
_CLOSES = {"}": "{", "]": "["}


def _json(text: str) -> _Found | None:
    spans = _spans(text)
    for bracket in "{[":
        for start, end in reversed(spans):
            value = _canonical(text[start:end]) if text[start] == bracket else None
            if value is not None:
                return _Found(value, (start, end) == (0, len(text)))
    return None


def _canonical(text: str) -> str | None:
    try:
        return canonical(json.loads(text)).decode("ascii")
    except (ValueError, RecursionError):  # an integer of thousands of digits, or a number too large for a float
        return None


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the outermost well-formed objects and arrays stand, in order.

    A start that lies inside a failed attempt fails with it and is not tried again, so a place in the text is passed at
    most twice: once outside of a string and once inside.
    """
    spans: list[tuple[int, int]] = []
    failed: set[int] = set()
    opening = _OPEN.search(text)
    while opening:
        start = opening.start()
        end, depth = (None, 0) if start in failed else _end(text, start, failed)
        if end is not None and depth <= NESTING:
            spans.append((start, end))
        opening = _OPEN.search(text, end or start + 1)
    return spans


def _end(text: str, start: int, failed: set[int]) -> tuple[int | None, int]:
    """Where the object or array that begins at `start` ends, and how deep it nests; None where it is ill-formed, and then
    the brackets that were open are noted.

    `wants` is what the grammar allows next: a value, a key, a colon, or what follows a value ("next"); after an opening
    bracket also its closing one.
    """
    stack: list[int] = []
    wants, position, fresh, depth = "value", start, False, 0
    while token := _TOKEN.match(text, position):
        position = token.end()
        sign = token["mark"]
        if sign in _CLOSES and stack and text[stack[-1]] == _CLOSES[sign] and (fresh or wants == "next"):
            stack.pop()
            if not stack:
                return position, depth
            wants, fresh = "next", False
        elif sign in ("{", "[") and wants == "value":
            stack.append(position - 1)
            depth = max(depth, len(stack))
            wants, fresh = ("key" if sign == "{" else "value"), True
        elif sign == "," and wants == "next":
            wants, fresh = ("key" if text[stack[-1]] == "{" else "value"), False
        elif sign == ":" and wants == "colon":
            wants = "value"
        elif sign is None and (wants == "value" or (wants == "key" and token["string"])):
            wants, fresh = ("colon" if wants == "key" else "next"), False
        else:
            break
    failed.update(stack)
    return None, depth


# --- code and text ---------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)(?P<info>[^\n]*+)")


def _code(text: str) -> _Found | None:
    lines = text.split("\n")
    found: _Found | None = None
    opened: re.Match[str] | None = None
    begin = 0
    for number, line in enumerate(lines):
        fence = _FENCE.fullmatch(line)
        if fence is None:
            continue
        if opened is None:
            if "`" not in fence["info"]:
                opened, begin = fence, number + 1
        elif fence["fence"].startswith(opened["fence"]) and not fence["info"].strip():
            body = "\n".join(_dedent(inner, len(opened["indent"])) for inner in lines[begin:number]).strip("\n")
            if body.strip():
                found = _Found(body, begin == 1 and number == len(lines) - 1)
            opened = None
    return found


def _dedent(line: str, indent: int) -> str:
    """A line of a block without the indentation of the block's fence."""
    return line[min(indent, len(line) - len(line.lstrip(" \t"))) :]


def _text(text: str) -> _Found | None:
    return _Found(text, True) if any(sign.isprintable() and not sign.isspace() for sign in text) else None


_READERS: dict[Format, Callable[[str], _Found | None]] = {
    "line": _line,
    "json": _json,
    "code": _code,
    "choice": _choice,
    "text": _text,
}


# --- numbers ---------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"[$€£]?\s*+(?P<sign>[-−+]?)\s*+[$€£]?\s*+(?P<whole>[0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)(?P<part>\.[0-9]++)?(?P<over>/[0-9]++)?"
)


def number(value: str) -> Fraction | None:
    """The one number that the value of a line states, exactly; None where it states none, or more than one.

    A currency sign, thousands commas, a unit and a remark in brackets are passed over, and of an equation the last side
    counts: `$29.00`, `29 apples`, `29 (in total)`, `1,234`, `3 * 4 = 12`, `1/2`. `29 or 30` and `29 - 1` are no number.
    """
    side = re.sub(r"\*\*|\\[()]|[`\\]", "", value[:400]).rpartition("=")[2].strip(" \t$_")
    match = _NUMBER.match(side)
    if match is None or max(len(match["whole"]), len(match["part"] or ""), len(match["over"] or "")) > 40:
        return None
    rest = re.sub(r"\([^()]*+\)", "", side[match.end() :])
    if re.search(r"[0-9]", rest) or re.match(r"\s*+[-+*/^]", rest):
        return None
    whole = Fraction(match["whole"].replace(",", "") + (match["part"] or ""))
    below = int((match["over"] or "/1")[1:])
    if below == 0:
        return None
    return (-whole if match["sign"] in ("-", "−") else whole) / below
