"""Countdown: an expression that uses the given numbers, each at most once, with + - * /, and has the target as its value.

The text of a model is parsed, never evaluated: only numbers, the four signs and brackets have a meaning here.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from fractions import Fraction

from harness.reading import read
from harness.records import Checked, Question, Reading, Task

FORMAT = "line"
LONGEST = 200
SIGNS = {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"}


def value_of(expression: str) -> tuple[Fraction, Counter[int]]:
    """The exact value of an expression, and the numbers that it uses.

    Raises:
        ValueError: it is no expression of whole numbers, + - * / and brackets.
    """
    for sign, plain in SIGNS.items():
        expression = expression.replace(sign, plain)
    if len(expression) > LONGEST:
        raise ValueError("too long")
    try:
        tree = ast.parse(expression.split("=")[0].strip(), mode="eval")
        return _value(tree.body)
    except (SyntaxError, RecursionError, MemoryError, ZeroDivisionError) as error:
        raise ValueError(str(error)) from None


def _value(node: ast.expr) -> tuple[Fraction, Counter[int]]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return Fraction(node.value), Counter([node.value])
    if isinstance(node, ast.BinOp):
        (left, used), (right, more) = _value(node.left), _value(node.right)
        used = used + more
        match node.op:
            case ast.Add():
                return left + right, used
            case ast.Sub():
                return left - right, used
            case ast.Mult():
                return left * right, used
            case ast.Div():
                return left / right, used
    raise ValueError("only numbers, + - * / and brackets")


def _judge(value: str | None, given: dict[str, object]) -> Checked:
    numbers, target = given["numbers"], given["target"]
    assert isinstance(numbers, list)
    assert isinstance(target, int)
    if value is None:
        return Checked(passed=False, feedback="There is no line of the form `Answer: <expression>`.")
    try:
        result, used = value_of(value)
    except ValueError:
        return Checked(passed=False, feedback=f"{value!r} is not an expression of numbers, + - * / and brackets.")
    extra = used - Counter(numbers)
    if extra:
        return Checked(
            passed=False, feedback=f"It uses {', '.join(map(str, extra.elements()))}, which is not given so often."
        )
    if result != target:
        return Checked(passed=False, feedback=f"Its value is {result}, and {target} is wanted.")
    return Checked(passed=True, feedback="It has the wanted value.")


def check(task: Task, reading: Reading) -> Checked:
    """The whole rule is in the prompt, so scoring and visible check agree; the reference is one solution of several."""
    assert task.given is not None
    return _judge(reading.value, dict(task.given))


def visible(question: Question, text: str) -> Checked:
    """Numbers and target as the prompt states them."""
    assert question.given is not None
    return _judge(read(text, FORMAT).value, dict(question.given))


def right(task: Task) -> str:
    return f"Answer: {task.reference}"


def wrong(task: Task, rng: random.Random) -> str:
    assert task.given is not None
    numbers = task.given["numbers"]
    assert isinstance(numbers, list)
    return f"Answer: {numbers[0]} + {rng.randint(100, 999)}"
