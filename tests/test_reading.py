"""The one reader: the last well-formed answer, wherever it stands, whatever surrounds it."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canonical import canonical
from harness.reading import NESTING, number, read
from harness.records import Format

FORMATS: tuple[Format, ...] = get_args(Format)
quick = settings(max_examples=150, derandomize=True, deadline=None)
HOSTILE_LETTERS = st.text(alphabet='{}[]":,\\`~*_<>()#-.1AaNn \n\r\t\u2028\0\ud800Answer:é漢', max_size=80)
TEXTS = st.one_of(
    st.text(max_size=60), HOSTILE_LETTERS, st.text(alphabet=st.characters(categories=["Cs", "Cc"]), max_size=20)
)
SIZE = 100_000
HOSTILE = (
    "{", "[", "`", '"', '{"', "[1,", '["a[",', '{"a":', '{"a":[', "[[],", "[1,[]", '[{"a":[],', '{"\\"', "[ ", "[]", "\\",
    "```\n", "~", "~~~x\n", "- ", "1. ", "> ", "#", "*", "_", "A\n", "Answer:", "Answer:\n", "Answer: Answer", "<", "answer is ",
    "\r", "\u2028", "\0", "\ud800",
)  # fmt: skip


# --- what every format keeps to --------------------------------------------------------------------------------------


@quick
@given(TEXTS, st.sampled_from(FORMATS))
def test_reading_never_raises_and_is_stable(text: str, format: Format) -> None:
    """Any text, NUL and lone surrogates among it, gives a reading, and the same one twice."""
    reading = read(text, format)
    assert reading.format == format
    assert reading == read(text, format)
    assert reading.value is None or reading.value.strip()
    assert not (reading.strict and reading.value is None)


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_texts_are_read_in_linear_time(format: Format) -> None:
    """100 kB of one repeated sign take a fraction of a second, also where a pattern could go back and forth."""
    texts = [(unit * SIZE)[:SIZE] for unit in HOSTILE]
    texts += ["[" * (SIZE // 2) + "]" * (SIZE // 2), "- " + " " * SIZE + "x", "Answer: " + "<" * SIZE + ">" * SIZE]
    texts += [
        "\n" * SIZE + "x",
        "[" + "9" * SIZE + "]",
        "[" * 700 + "]" * 700,
        "".join("`" * (3 + n) + "\n" for n in range(440)),
    ]
    for text in texts:
        clock = time.perf_counter()
        read(text, format)
        assert time.perf_counter() - clock < 2, f"{text[:12]!r} took too long"


@pytest.mark.parametrize("format", ["line", "json", "code", "choice"])
@pytest.mark.parametrize("text", ["", " \n\t", "I do not know.", "\0", "Sorry, I cannot help with that."])
def test_no_answer_is_none_and_not_strict(format: Format, text: str) -> None:
    """An empty text, a refusal or prose holds no answer: a reader never makes one up."""
    reading = read(text, format)
    assert (reading.value, reading.strict) == (None, False)


# --- line ------------------------------------------------------------------------------------------------------------

LINE = [
    ("Answer: 29", "29"),
    ("It is 28.\nAnswer: 28\nNo, wait.\nAnswer: 29", "29"),
    ("Answer: 29\n\nI hope this helps!", "29"),
    ("Answer: 29\r\nThanks.", "29"),
    ("Answer: 29\rThanks.", "29"),
    ("**Answer:** 29", "29"),
    ("**Answer**: 29", "29"),
    ("**Answer: 29**", "29"),
    ("**Answer: 29** (in total)", "29 (in total)"),
    ("__Answer:__ 29", "29"),
    ("*Answer: 3 * 5*", "3 * 5"),
    ("* Answer: 3 * 5", "3 * 5"),
    ("- **Final answer:** `29`", "29"),
    ("### Final Answer: 29", "29"),
    ("1. The answer is: 29", "29"),
    ("> Answer: 29", "29"),
    ("ANSWER: 29", "29"),
    ("Answer：29", "29"),
    ("`Answer: 29`", "29"),
    ("```Answer: 29```", "29"),
    ("```\nAnswer: 29\n```", "29"),
    ("Answer: `Answer: 29`", "29"),
    ("Answer: <29>", "29"),
    ("Answer: **29**", "29"),
    ("Answer: **a** and **b**", "**a** and **b**"),
    ("Answer: 2 ** 3", "2 ** 3"),
    ("Answer: __init__", "__init__"),
    ("Answer: $29.00", "$29.00"),
    ("Answer: 東京", "東京"),
    ("Answer: a\u2028b", "a\u2028b"),
    ("Answer: a\x0cb", "a\x0cb"),
    ("Answer: 5\nAnswer:", "5"),
    ("Answer: 5\nAnswer: <answer>", "5"),
    ("Answer: 5\nAnswer: ****", "5"),
    ("So the answer: 5 is it", None),
    ("Answers: 5", None),
    ("Answer 5", None),
    ("The reply ends with `Answer: <answer>`.", None),
    ("Answer:\n29", None),
]


@pytest.mark.parametrize(("text", "value"), LINE)
def test_line_reads_the_last_labelled_line(text: str, value: str | None) -> None:
    """Markdown, case, fences and later lines do not matter; a line without a value, or with the example, is none."""
    assert read(text, "line").value == value


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ("Answer: 29", True),
        ("  Answer: 29\n", True),
        ("answer: 29", False),
        ("So.\nAnswer: 29", False),
        ("Answer: 29\nSo.", False),
    ],
)
def test_line_is_strict_where_the_text_is_the_bare_line(text: str, strict: bool) -> None:
    """Strict is the declared form and nothing else, blanks around it apart."""
    assert read(text, "line") == read("Answer: 29", "line").model_copy(update={"strict": strict})


@quick
@given(TEXTS)
def test_line_gives_its_own_values_back(text: str) -> None:
    """A value that was read once is read again unchanged from the plain form, strictly."""
    value = read(f"Answer: {text}", "line").value
    if value is not None:
        again = read(f"Answer: {value}", "line")
        assert again.value == value
        assert again.strict


@quick
@given(TEXTS, TEXTS)
def test_line_does_not_depend_on_the_text_around_it(before: str, after: str) -> None:
    """Whatever stands in lines before it, and in lines after it that hold no answer of their own."""
    assert read(f"{before}\nAnswer: 29", "line").value == "29"
    if read(after, "line").value is None:
        assert read(f"{before}\nAnswer: 29\n{after}", "line").value == "29"


# --- json ------------------------------------------------------------------------------------------------------------

JSON = [
    ('{"b": 1, "a": [true, null]}', '{"a":[true,null],"b":1}'),
    ('Here it is:\n```json\n{"a": 1}\n```\nDone.', '{"a":1}'),
    ('{"a": 1} or rather {"a": 2}', '{"a":2}'),
    ('{"a": {"b": 2}}', '{"a":{"b":2}}'),
    ('Use { and then {"a": 1}', '{"a":1}'),
    ('The 5" disk: {"a": "}"}', '{"a":"}"}'),
    ('{"a": 1} as said in [1]', '{"a":1}'),
    ("[1, 2]", "[1,2]"),
    ('[{"a": 1}]', '[{"a":1}]'),
    ('{"a": "\\ud800"}', '{"a":"\\ud800"}'),
    ('{"a": "\u2028"}', '{"a":"\\u2028"}'),
    ('{"a": 1,}', None),
    ("{'a': 1}", None),
    ('{"a": NaN}', None),
    ('{"a": 1e999}', None),
    ('{"a": 01}', None),
    ('{"a": "line\nbreak"}', None),
    ('{"a": 1', None),
    ("3", None),
    ('"text"', None),
    ('{"a": 1}, {"a": ' + "9" * 5000 + "}", '{"a":1}'),
]


@pytest.mark.parametrize(("text", "value"), JSON)
def test_json_reads_the_last_outermost_object(text: str, value: str | None) -> None:
    """Prose, fences and stray brackets do not matter; what a JSON parser refuses is no answer."""
    assert read(text, "json").value == value


def test_json_of_excessive_depth_is_no_answer() -> None:
    """Deep nesting neither raises nor counts, and hides no answer before it."""
    deep = "[" * (NESTING + 1) + "]" * (NESTING + 1)
    assert read("[" * NESTING + "]" * NESTING, "json").value is not None
    assert read(deep, "json").value is None
    assert read('{"a":' * 5000 + "1" + "}" * 5000, "json").value is None
    assert read(f'{{"a": 1}} {deep}', "json").value == '{"a":1}'


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@quick
@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 2]), TEXTS)
def test_json_is_canonical_and_found_behind_any_text(value: dict[str, object], indent: int | None, before: str) -> None:
    """However an object is written, its canonical form is read, alone (strictly) and after prose that opens no bracket."""
    written = json.dumps(value, indent=indent, ensure_ascii=bool(indent))
    expected = canonical(value).decode()  # type: ignore[arg-type]
    assert read(written, "json").model_dump() == {"format": "json", "value": expected, "strict": True}
    prose = before.translate(dict.fromkeys(map(ord, "{[")))
    assert read(f"{prose}\n{written}\nThat is all.", "json").value == expected


@quick
@given(TEXTS)
def test_json_agrees_with_the_library_on_whole_texts(text: str) -> None:
    """Strict is exactly: the library parses the whole text as an object or array without NaN or infinity."""
    try:
        parsed = canonical(json.loads(text.strip())).decode() if text.strip()[:1] in ("{", "[") else None
    except ValueError:
        parsed = None
    reading = read(text, "json")
    assert (reading.value if reading.strict else None) == parsed


# --- code ------------------------------------------------------------------------------------------------------------

CODE = [
    ("```python\nx = 1\n```", "x = 1"),
    ("First:\n```\nx = 1\n```\nBetter:\n```py\nx = 2\n\ny = 3\n```\nDone.", "x = 2\n\ny = 3"),
    ("~~~\nx = 1\n~~~", "x = 1"),
    ("````\na\n```\nb\n```\n````", "a\n```\nb\n```"),
    ("1. Do this:\n   ```\n   if x:\n       y()\n   ```", "if x:\n    y()"),
    ("```\r\nx = 1\r\n```", "x = 1"),
    ("```\nx = 1\n```py\ny = 2\n```", "x = 1\n```py\ny = 2"),
    ("```\nx = 1\n```\n```\nx = 2", "x = 1"),
    ("```\nx = 1\n```\n```\n\n```", "x = 1"),
    ("```inline``` only", None),
    ("```\nx = 1", None),
    ("x = 1", None),
]


@pytest.mark.parametrize(("text", "value"), CODE)
def test_code_reads_the_last_closed_block(text: str, value: str | None) -> None:
    """Tildes, longer fences and indented ones count; an open block was cut and an empty one says nothing."""
    assert read(text, "code").value == value


@quick
@given(TEXTS)
def test_code_gives_its_own_values_back(text: str) -> None:
    """A block that was read once is read again unchanged from a bare block, strictly."""
    value = read(f"~~~~~\n{text}\n~~~~~", "code").value
    if value is not None:
        again = read(f"{'~' * 90}\n{value}\n{'~' * 90}", "code")
        assert again.value == value
        assert again.strict


# --- choice and text -------------------------------------------------------------------------------------------------

CHOICE = [
    ("B", "B"),
    ("(b)", "B"),
    ("**B**", "B"),
    ("Answer: B", "B"),
    ("A is tempting.\nAnswer: A\nBut no.\nAnswer: C", "C"),
    ("Answer: B) Paris", "B"),
    ("Answer: (B) Paris", "B"),
    ("**Answer: B.**", "B"),
    ("Answer: Option D", "D"),
    ("Answer: **B** - yes", "B"),
    ("I choose\n\nB.", "B"),
    ("Answer: A dog", None),
    ("Answer: B-movie", None),
    ("Answer: both", None),
    ("B) Paris", None),
    ("A good question, I think", None),
]


@pytest.mark.parametrize(("text", "value"), CHOICE)
def test_choice_reads_the_last_anchored_letter(text: str, value: str | None) -> None:
    """A letter counts alone on its line or right after the label, and a word that begins with it does not."""
    assert read(text, "choice").value == value


@pytest.mark.parametrize(("text", "strict"), [("B", True), ("Answer: B", True), ("(B)", False), ("b", False)])
def test_choice_is_strict_where_the_text_is_the_letter(text: str, strict: bool) -> None:
    """The bare capital or the declared line."""
    assert read(text, "choice").model_dump() == {"format": "choice", "value": "B", "strict": strict}


def test_text_is_the_whole_visible_text() -> None:
    """Trimmed, with line feeds as line ends; blanks, control signs and zero-width signs alone are no answer."""
    assert read(" Take\r\nthe bus. \n", "text").model_dump() == {
        "format": "text",
        "value": "Take\nthe bus.",
        "strict": True,
    }
    for blank in ("", " \n ", "\0\0", "\u200b", "\ud800"):
        assert read(blank, "text").value is None


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("29", 29), ("$29.00", 29), ("29 apples", 29), ("**29** apples", 29), ("29 (of 30)", 29), ("29.", 29), ("-5", -5),
        ("$-5", -5), ("−5", -5), ("1,234", 1234), ("3 * 4 = 12", 12), ("1/2", Fraction(1, 2)), ("0.1", Fraction(1, 10)),
        ("\\(29\\)", 29), ("\\$29", 29), ("29%", 29), ("29 or 30", None), ("29 - 1", None), ("29*2", None), ("x", None),
        ("", None), ("2/0", None), ("9" * 200, None), ("twenty", None),
    ],
)  # fmt: skip
def test_number_reads_the_one_number_of_a_value(value: str, expected: int | Fraction | None) -> None:
    """Currency, units, brackets and equations are passed over; two numbers, or an open calculation, are none."""
    assert number(value) == expected


@quick
@given(TEXTS)
def test_number_never_raises(text: str) -> None:
    """Any value gives a fraction or None."""
    assert number(text) is None or isinstance(number(text), Fraction)
