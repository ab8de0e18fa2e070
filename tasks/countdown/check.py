"""Reach a target from given numbers with + - * / and parentheses: computed exactly, from the prompt's own numbers.

No text is executed. An expression is parsed into a tree of which four operators and whole numbers are let through, and is
computed in fractions. Since exponents are not among them, and a text is at most 200 signs long, no answer can be costly.
"""

from __future__ import annotations

import ast
import operator
import random
import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from pydantic import JsonValue

from harness.reading import read
from harness.records import Checked, Format, Question, Reading, Task

FORMAT: Format = "line"

LONGEST = 200
"""Signs that an expression may have."""
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_SIGNS = {
    "×": "*",
    "·": "*",
    "÷": "/",
    "−": "-",
    "–": "-",
    "\\times": "*",
    "\\cdot": "*",
    "\\div": "/",
    "[": "(",
    "]": ")",
}
_REMARK = re.compile(r"\s*\([^()]*[A-Za-z]{2}[^()]*\)\s*$")


class NotAnExpression(ValueError):
    """The text is no expression of whole numbers with + - * / and parentheses."""


def check(task: Task, reading: Reading) -> Checked:
    """Does the expression use the given numbers, each at most once, and give the target?"""
    return _judge(task.given or {}, reading.value)


def visible(question: Question, text: str) -> Checked:
    """The same: the prompt states all that is needed."""
    return _judge(question.given or {}, read(text, FORMAT).value)


def right(task: Task) -> str:
    """The generator's own expression."""
    return f"Answer: {task.reference}"


def wrong(task: Task, rng: random.Random) -> str:
    """An expression over the given numbers that misses the target."""
    numbers, target = _given(task.given or {})
    while True:
        left, second = rng.sample(numbers, 2)
        text = f"{left} {rng.choice('+-*')} {second}"
        if compute(text)[0] != target:
            return f"Answer: {text}"


def _given(given: Mapping[str, JsonValue]) -> tuple[list[int], int]:
    numbers, target = given["numbers"], given["target"]
    assert isinstance(numbers, list)
    assert isinstance(target, int)
    return [number for number in numbers if isinstance(number, int)], target


def _judge(given: Mapping[str, JsonValue], value: str | None) -> Checked:
    numbers, target = _given(given)
    fault = _fault(numbers, target, value)
    return Checked(passed=fault is None, feedback=fault or "It reaches the target with the given numbers.")


def _fault(numbers: list[int], target: int, value: str | None) -> str | None:
    if value is None:
        return "There is no line of the form `Answer: ...`."
    try:
        result, used = compute(expression_of(value, target))
    except NotAnExpression as error:
        return f"The answer is not one expression of whole numbers with + - * / and parentheses ({error})."
    except ZeroDivisionError:
        return "The expression divides by zero."
    foreign = Counter(used) - Counter(numbers)
    if foreign:
        known = ", ".join(map(str, numbers))
        return f"The expression uses {', '.join(map(str, foreign.elements()))} beyond the given numbers {known} (each at most once)."
    if result != target:
        return f"The expression gives {result}, not {target}."
    return None


def expression_of(value: str, target: int) -> str:
    """The expression in an answer's value: without typographic signs, a closing remark in brackets, and `= target`.

    Raises:
        NotAnExpression: too long, or an equation that has other than one side besides the target.
    """
    if len(value) > LONGEST:
        raise NotAnExpression(f"longer than {LONGEST} signs")
    text = _REMARK.sub("", re.sub(r"\\[()\[\]]|\$", " ", value)).strip(" \t`*.;,")
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    text = re.sub(r"(?<=[0-9)])\s*[xX]\s*(?=[0-9(])", "*", text)
    sides = [side.strip() for side in text.split("=")]
    if len(sides) == 1:
        return sides[0]
    others = [side for side in sides if side != str(target)]
    if len(sides) != 2 or len(others) > 1:
        raise NotAnExpression(f"of an equation, one side has to be {target}")
    return (others or sides)[0]


def compute(text: str) -> tuple[Fraction, list[int]]:
    """The exact value of an expression, and the whole numbers that it uses, in order.

    Raises:
        NotAnExpression: other signs or operators than allowed. ZeroDivisionError: it divides by zero.
    """
    if not re.fullmatch(r"[0-9+\-*/() ]+", text) or len(text) > LONGEST:
        raise NotAnExpression("other signs in it")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise NotAnExpression("it cannot be parsed") from None
    used: list[int] = []
    return _value(tree.body, used), used


def _value(node: ast.expr, used: list[int]) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        used.append(node.value)
        return Fraction(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, used), _value(node.right, used)
        result: Fraction = _OPERATORS[type(node.op)](left, right)
        return result
    raise NotAnExpression("an operator that is not allowed")
