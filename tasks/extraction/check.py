"""Fill in the stated fields from a short notice: one JSON object with exactly the stated keys, every value right.

The visible check knows what the prompt states (keys, types, forms of values), never the values.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from datetime import date, timedelta

from pydantic import JsonValue

from harness.canonical import canonical
from harness.reading import read
from harness.records import Checked, Format, Question, Reading, Task

FORMAT: Format = "json"

Fields = dict[str, JsonValue]


def check(task: Task, reading: Reading) -> Checked:
    """Are keys, types and all values right? The score is the share of fields that are."""
    expected = task.reference
    assert isinstance(expected, dict)
    fault = _fault(task.given or {}, reading.value)
    found = _object(reading.value) or {}
    right_ones = [key for key, value in expected.items() if key in found and same(found[key], value)]
    score = len(right_ones) / len(expected)
    if fault is None and score < 1:
        fault = "The form is right, but not every value is what the notice says."
    return Checked(passed=fault is None, score=score, feedback=fault or "Every field is right.")


def visible(question: Question, text: str) -> Checked:
    """Are keys, types and forms as the prompt states them?"""
    fault = _fault(question.given or {}, read(text, FORMAT).value)
    return Checked(passed=fault is None, feedback=fault or "Keys, types and forms are as stated.")


def right(task: Task) -> str:
    """The reference."""
    return canonical(task.reference).decode("ascii")


def wrong(task: Task, rng: random.Random) -> str:
    """The reference with one value changed, its form kept."""
    assert isinstance(task.reference, dict)
    forms = _forms(task.given or {})
    key = rng.choice(sorted(task.reference))
    return canonical(task.reference | {key: _other(task.reference[key], forms[key])}).decode("ascii")


def _other(value: JsonValue, form: str) -> JsonValue:
    """Another value of the same form."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    text = str(value)
    if form == "date":
        return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
    if form == "time":
        return f"{(int(text[:2]) + 1) % 24:02d}{text[2:]}"
    choices = [choice for choice in form.split("|") if choice != text] if "|" in form else []
    return choices[0] if choices else text[::-1]


# --- forms -----------------------------------------------------------------------------------------------------------


def _is_date(value: JsonValue) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


FORMS: dict[str, tuple[str, Callable[[JsonValue], bool]]] = {
    "text": ("a string that is not empty", lambda value: isinstance(value, str) and bool(value.strip())),
    "integer": ("an integer", lambda value: _is_number(value) and float(str(value)).is_integer()),
    "number": ("a number", _is_number),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "date": ("a string YYYY-MM-DD", _is_date),
    "time": (
        "a string HH:MM, 24 hours",
        lambda value: isinstance(value, str) and bool(re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", value)),
    ),
}
"""Form of a field -> its words in prompt and feedback, and its test. A form `a|b|c` is one of these strings."""


def words(form: str) -> str:
    """A form as prompt and feedback put it."""
    return "one of " + ", ".join(f'"{choice}"' for choice in form.split("|")) if "|" in form else FORMS[form][0]


def fits(value: JsonValue, form: str) -> bool:
    """Has a value the form?"""
    return value in form.split("|") if "|" in form else FORMS[form][1](value)


def same(found: JsonValue, expected: JsonValue) -> bool:
    """Equal values: numbers by value, texts apart from case, blanks, a leading article and a closing full stop."""
    if isinstance(found, str) and isinstance(expected, str):
        return _plain(found) == _plain(expected)
    return isinstance(found, bool) == isinstance(expected, bool) and found == expected


def _plain(text: str) -> str:
    return re.sub(r"^(?:the|an?) (?=.)", "", " ".join(text.casefold().split()).removesuffix("."))


def _forms(given: Fields) -> dict[str, str]:
    fields = given["fields"]
    assert isinstance(fields, dict)
    return {key: str(form) for key, form in fields.items()}


def _object(value: str | None) -> Fields | None:
    data = None if value is None else json.loads(value)
    return data if isinstance(data, dict) else None


def _fault(given: Fields, value: str | None) -> str | None:
    data, forms = _object(value), _forms(given)
    if data is None:
        return "There is no JSON object."
    missing, unknown = [key for key in forms if key not in data], [key for key in data if key not in forms]
    if missing:
        return f"The key {missing[0]!r} is missing."
    if unknown:
        return f"The key {unknown[0][:40]!r} was not asked for."
    for key, form in forms.items():
        if not fits(data[key], form):
            return f"{key!r} is not {words(form)}."
    return None
