"""Extraction: the fields of a short notice as one JSON object, keys and types as the prompt states them."""

from __future__ import annotations

import json
import random
import re

from harness.reading import read
from harness.records import Checked, Question, Reading, Task

FORMAT = "json"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _object(value: str | None) -> dict[str, object] | None:
    data = json.loads(value) if value else None
    return data if isinstance(data, dict) else None


def _same(found: object, wanted: object) -> bool:
    """Numbers by value, texts without regard to case and outer blanks; a number as a text is not the number."""
    if isinstance(wanted, str):
        return isinstance(found, str) and found.strip().casefold() == wanted.casefold()
    return isinstance(found, int | float) and not isinstance(found, bool) and found == wanted


def check(task: Task, reading: Reading) -> Checked:
    """Every field right and none too many; the score is the share of right fields."""
    wanted, found = task.reference, _object(reading.value)
    assert isinstance(wanted, dict)
    if found is None:
        return Checked(passed=False, score=0.0, feedback="not a JSON object")
    right_ones = [key for key, value in wanted.items() if _same(found.get(key), value)]
    passed = len(right_ones) == len(wanted) and found.keys() == wanted.keys()
    return Checked(
        passed=passed, score=len(right_ones) / len(wanted), feedback=f"{len(right_ones)} of {len(wanted)} fields"
    )


def visible(question: Question, text: str) -> Checked:
    """Keys, types and the form of the date, as the prompt states them; never a value."""
    assert question.given is not None
    fields = question.given["fields"]
    assert isinstance(fields, dict)
    found = _object(read(text, FORMAT).value)
    if found is None:
        return Checked(passed=False, score=0.0, feedback="There is no JSON object in it.")
    faults = [f"the key {key!r} is missing" for key in fields if key not in found]
    faults += [f"the key {key!r} was not asked for" for key in found if key not in fields]
    faults += [
        f"{key!r} must be {kind}"
        for key, kind in fields.items()
        if key in found and not _of_kind(found[key], str(kind))
    ]
    score = 1 - min(1.0, len(faults) / len(fields))
    return Checked(
        passed=not faults, score=score, feedback="; ".join(faults) + "." if faults else "Keys and types are right."
    )


def _of_kind(value: object, kind: str) -> bool:
    if kind == "a date YYYY-MM-DD":
        return isinstance(value, str) and DATE.fullmatch(value) is not None
    if kind == "a whole number":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str) and bool(value.strip())


def right(task: Task) -> str:
    return json.dumps(task.reference)


def wrong(task: Task, rng: random.Random) -> str:
    assert isinstance(task.reference, dict)
    numbers = [key for key, value in task.reference.items() if isinstance(value, int)]
    return json.dumps({**task.reference, rng.choice(numbers): rng.randint(1000, 9999)})
