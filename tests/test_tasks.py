"""Pools of tasks: strict files, families loaded from frozen bytes, seeded samples, and the shipped families themselves."""

from __future__ import annotations

import importlib
import itertools
import json
import random
import re
import sys
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tasks as pools
from harness.errors import StudyError
from harness.reading import read
from harness.records import LabelledPair, Question, Task
from tasks.making import lines

quick = settings(max_examples=100, derandomize=True, deadline=None)
FAMILIES = pools.names()
CHECKED = ["countdown", "extraction", "sorting"]


def shipped(name: str) -> list[Task]:
    """The tasks of a shipped family."""
    return pools.load_tasks(pools.ROOT / name / "tasks.jsonl")


def family(name: str) -> pools.Family:
    """A shipped family."""
    return pools.load_family(pools.ROOT / name)


def line(**changes: object) -> str:
    """One good line of a pool `mine.jsonl`, with changes."""
    base = {"id": "a", "family": "mine", "split": "dev", "prompt": "2 + 2?", "answer_format": "line", "reference": "4"}
    return json.dumps(base | {"ground_truth": "exact"} | changes)


def pool(folder: Path, *content: str | bytes) -> Path:
    """A pool of raw lines."""
    path = folder / "mine.jsonl"
    raw = [one.encode() if isinstance(one, str) else one for one in content]
    path.write_bytes(b"".join(one + b"\n" for one in raw))
    return path


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_pool_keeps_the_order_and_content_of_its_file(tmp_path: Path) -> None:
    """Tasks come as they stand; U+2028, an escaped NUL and a lone surrogate in a text are content."""
    path = pool(tmp_path, line(id="b", prompt="x\u2028y\0z"), line(id="a", prompt="\ud800"))
    assert [(task.id, task.prompt) for task in pools.load_tasks(path)] == [("b", "x\u2028y\0z"), ("a", "\ud800")]
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert len(pools.load_tasks(path)) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "mine.jsonl: is empty"),
        ([b""], "mine.jsonl: is empty"),
        ([line(), line(id="b"), line()], "mine.jsonl:3: id 'a' stands in line 1 already"),
        ([line(), line(id="b", family="yours")], "mine.jsonl:2: family 'yours'; in this file it must be 'mine'"),
        ([line(), line(id="b", answer_format="text")], "mine.jsonl:2: answer_format 'text', but line 1 says 'line'"),
        ([line(prompt=" ")], "mine.jsonl:1: prompt: it is empty"),
        ([line(), "", line(id="b")], "mine.jsonl:2: is a blank line; remove it"),
        ([line() + "\r", line(id="b") + "\r"], "mine.jsonl:1: holds a carriage return .* dos2unix"),
        ([line().replace("2 + 2", "2\0").encode()], r"mine.jsonl:1: holds a NUL byte; .* \\u0000"),
        ([b"\xef\xbb\xbf" + line().encode()], "mine.jsonl:1: begins with a byte order mark; save"),
        ([line().encode("utf-16")], "mine.jsonl:1: begins with a byte order mark; save"),
        ([line(), b'{"id": "\xff"}'], "mine.jsonl:2: is not UTF-8"),
        ([line()[:-1]], "mine.jsonl:1: is not one JSON object: "),
        ([line() + line(id="b")], "mine.jsonl:1: is not one JSON object: Extra data"),
        (["[1]"], "mine.jsonl:1: is not one JSON object, but list"),
        (["[" * 100_000], "mine.jsonl:1: is not one JSON object"),
        ([line()[:-1] + ', "id": "z"}'], "the key 'id' stands twice"),
        ([line(reference=float("nan"))], "NaN is no JSON number"),
        ([line(refrence="4")], "mine.jsonl:1: refrence: unknown key; did you mean 'reference'?"),
        ([line(split="test")], "mine.jsonl:1: split: 'test' is not one of 'dev' or 'heldout'"),
        ([line(answer_format="number")], "mine.jsonl:1: answer_format: 'number' is not one of 'line', 'json'"),
        ([line(id="A b")], "mine.jsonl:1: id: .*'A b'"),
        ([line(prompt=3)], "mine.jsonl:1: prompt: .*'3'"),
        (['{"id": "a"}'], "mine.jsonl:1: family: is missing\n"),
    ],
)
def test_a_fault_in_a_pool_is_named_with_its_place(tmp_path: Path, content: list[str | bytes], message: str) -> None:
    """File, line, what is wrong, and what would be right; nothing is skipped or repaired."""
    with pytest.raises(StudyError, match=message):
        pools.load_tasks(pool(tmp_path, *content))


def test_a_pool_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With the system's reason."""
    with pytest.raises(StudyError, match=r"none\.jsonl: cannot be read \(No such file"):
        pools.load_tasks(tmp_path / "none.jsonl")


def test_labelled_pairs_are_checked_too(tmp_path: Path) -> None:
    """Two equal texts measure no judge, and a tie belongs to the stratum of equal pairs."""
    good = {
        "id": "a",
        "stratum": "obvious",
        "question": "?",
        "left": "x",
        "right": "y",
        "label": "left",
        "grounds": "x",
    }
    assert [pair.id for pair in pools.load_pairs(pool(tmp_path, json.dumps(good)))] == ["a"]
    for changes, message in (
        ({"right": "x"}, "mine.jsonl:1: both texts are the same"),
        ({"label": "tie"}, "'tie' and the stratum 'equal' go together"),
        ({"stratum": "equal"}, "'tie' and the stratum 'equal' go together"),
        ({"stratum": "easy"}, "stratum: 'easy' is not one of"),
    ):
        with pytest.raises(StudyError, match=message):
            pools.load_pairs(pool(tmp_path, json.dumps(good | changes)))


# --- samples ---------------------------------------------------------------------------------------------------------


def some_tasks(count: int) -> list[Task]:
    """Tasks t0, t1, ..."""
    return [Task.model_validate_json(line(id=f"t{number}")) for number in range(count)]


@quick
@given(st.integers(0, 10**9), st.integers(0, 20), st.randoms(use_true_random=False))
def test_a_sample_depends_on_seed_pool_and_ids_alone(seed: int, count: int, order: random.Random) -> None:
    """The file's order does not matter, and one more task displaces at most one."""
    everything = some_tasks(20)
    drawn = pools.draw(everything, count, seed, "mine")
    shuffled = order.sample(everything, len(everything))
    assert pools.draw(shuffled, count, seed, "mine") == drawn
    assert [task.id for task in drawn] == sorted({task.id for task in drawn})
    assert len(drawn) == count
    more = pools.draw(some_tasks(21), count, seed, "mine")
    assert len({task.id for task in drawn} - {task.id for task in more}) <= 1


def test_every_task_is_drawn_about_equally_often() -> None:
    """Over 4,000 seeds each of 10 tasks is in a sample of 3 in 30 % of the draws, within five standard errors."""
    everything = some_tasks(10)
    counts = dict.fromkeys((task.id for task in everything), 0)
    for seed in range(4000):
        for task in pools.draw(everything, 3, seed, "mine"):
            counts[task.id] += 1
    assert all(abs(count - 1200) < 5 * (4000 * 0.3 * 0.7) ** 0.5 for count in counts.values()), counts


def test_another_pool_or_seed_draws_another_sample() -> None:
    """Pools of equal ids are drawn independently."""
    samples = {
        tuple(task.id for task in pools.draw(some_tasks(40), 8, seed, name)) for seed in (1, 2) for name in ("a", "b")
    }
    assert len(samples) == 4


def test_pairs_are_drawn_from_each_stratum_in_turn() -> None:
    """Twelve of four strata are three of each, in the order of ids, and never the first ones for every seed."""
    everything = pools.load_pairs(pools.ROOT / "judge-calibration" / "pairs.jsonl")
    samples = [pools.draw_pairs(everything, 12, seed, "main") for seed in range(5)]
    for sample in samples:
        strata = [pair.stratum for pair in sample]
        assert {stratum: strata.count(stratum) for stratum in strata} == dict.fromkeys(
            ("adversarial", "equal", "obvious", "subtle"), 3
        )
        assert [pair.id for pair in sample] == sorted(pair.id for pair in sample)
    assert len({tuple(pair.id for pair in sample) for sample in samples}) == 5
    assert pools.draw_pairs(everything[::-1], 12, 0, "main") == samples[0]


def test_more_than_there_are_cannot_be_drawn() -> None:
    """Never a smaller pool without a word."""
    with pytest.raises(StudyError, match="mine: a sample of 4 was asked for, and there are 3"):
        pools.draw(some_tasks(3), 4, 1, "mine")
    with pytest.raises(StudyError, match="a sample of 1 was asked for, and there are 0"):
        pools.draw_pairs([], 1, 1, "mine")


def test_a_question_holds_all_but_the_key() -> None:
    """Every field of a question is the task's own; reference and ground truth have no place in it."""
    task = Task.model_validate_json(line(facts="f", constraints="c", position="p", given={"x": 1}, workspace="w"))
    shown = pools.question(task)
    assert shown.id == "mine/a"
    assert shown.model_dump(exclude={"id"}) == task.model_dump(include=set(Question.model_fields) - {"id"})
    assert not {"reference", "ground_truth", "split", "cluster"} & set(Question.model_fields)


# --- checkers --------------------------------------------------------------------------------------------------------

CHECKER = """
FORMAT = "line"
def check(task, reading):
    from harness.records import Checked
    return Checked(passed=reading.value == task.reference, feedback="")
"""


def checker(folder: Path, text: str = CHECKER, name: str = "mine.py") -> Path:
    """A checker file."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_checker_of_five_lines_is_a_family(tmp_path: Path) -> None:
    """FORMAT and check are enough; right and wrong come from the reference."""
    found = pools.load_family(tmp_path, checker(tmp_path))
    task = Task.model_validate_json(line())
    assert (found.name, found.format, found.visible) == ("mine", "line", None)
    assert found.source_files == (tmp_path / "mine.py",)
    assert found.check is not None
    assert found.check(task, read(found.right(task), "line")).passed
    assert not found.check(task, read(found.wrong(task, random.Random(1)), "line")).passed


@pytest.mark.parametrize("format", ["line", "json", "code", "choice", "text"])
def test_plain_answers_for_scripted_models_keep_the_format(format: str) -> None:
    """The reference written out is read back as itself; the plain wrong answer is well-formed and another."""
    reference: object = {"json": {"a": 1}, "choice": "B"}.get(format, "x = 1")
    task = Task.model_validate_json(line(answer_format=format, reference=reference))
    right, wrong = pools._right(task), pools._wrong(task, random.Random(1))
    expected = json.dumps(reference, separators=(",", ":")) if format == "json" else reference
    assert read(right, task.answer_format).value == expected
    assert read(wrong, task.answer_format).value not in (None, expected)
    with pytest.raises(StudyError, match="mine/a: no reference; scripted models need right"):
        pools._right(task.model_copy(update={"reference": None}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def check(task, reading): ...", r"mine.py: FORMAT is missing; one of line, json, code, choice, text"),
        ('FORMAT = "lines"\ncheck = None', r"mine.py: FORMAT: 'lines'; did you mean 'line'\?"),
        ("FORMAT = 3\ncheck = None", "mine.py: FORMAT: 3; known: "),
        ('FORMAT = "line"', r"mine.py: check\(task, reading\) -> Checked is missing"),
        ('FORMAT = "line"\ncheck = 3', "mine.py: check is int, not a function"),
        (CHECKER + "right = 'x'", "mine.py: right is str, not a function"),
        ("FORMAT = 'line'\ndef check(:", "mine.py:2: is not Python: "),
        ("FORMAT = 'line'\0", "mine.py:1: is not Python: "),
        ("1 / 0", "mine.py: fails when it is imported: ZeroDivisionError"),
        ("import no_such_module_anywhere", "mine.py: fails when it is imported: ModuleNotFoundError"),
        ("from . import other", "mine.py:1: a relative import"),
        ("def f():\n    import beside\n", "mine.py:2: imports beside.py, a file beside it, in a block"),
        ("import circle", "imports in a circle: mine.py -> circle.py -> mine.py"),
    ],
)
def test_a_fault_in_a_checker_is_named_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    """What is missing or fails, and where."""
    checker(tmp_path, "", "beside.py")
    checker(tmp_path, "import mine", "circle.py")
    with pytest.raises(StudyError, match=message):
        pools.load_family(tmp_path, checker(tmp_path, text))


def test_a_checker_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With what it would have to hold."""
    with pytest.raises(StudyError, match=r"check\.py: is not there; a family needs a checker with FORMAT and check"):
        pools.load_family(tmp_path)


def test_files_beside_a_checker_freeze_with_it_and_do_not_mix(tmp_path: Path) -> None:
    """Two pools may each have a helper.py: each checker gets its own, and neither stays importable."""
    families = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        checker(folder, f"from base import ONE\nVALUE = ONE * {number}", "helper.py")
        checker(folder, "ONE = 1", "base.py")
        checker(folder, "unused = 1", "unrelated.py")
        text = "import json\nfrom helper import VALUE\nimport helper\n" + CHECKER + "right = lambda task: str(VALUE)"
        families.append(pools.load_family(folder, checker(folder, text)))
    task = Task.model_validate_json(line())
    assert [one.right(task) for one in families] == ["1", "2"]
    assert [path.name for path in families[0].source_files] == ["base.py", "helper.py", "mine.py"]
    assert not {"helper", "base", "mine"} & set(sys.modules)


def test_a_checker_that_was_edited_runs_as_it_stands_now(tmp_path: Path) -> None:
    """No compiled copy answers for it, even where size and time of the file are the same."""
    import os

    results = []
    for value in ("1", "2"):
        path = checker(tmp_path, CHECKER + f"right = lambda task: '{value}'")
        os.utime(path, (10**9, 10**9))
        results.append(pools.load_family(tmp_path, path).right(Task.model_validate_json(line())))
    assert results == ["1", "2"]
    assert not (tmp_path / "__pycache__").exists()


# --- the shipped families --------------------------------------------------------------------------------------------


def test_the_shipped_families_are_these() -> None:
    """A family that is not found is not packaged."""
    assert ["advice", *CHECKED] == FAMILIES


@pytest.mark.parametrize("name", [*FAMILIES, "judge-calibration"])
def test_data_are_what_their_generator_makes(name: str) -> None:
    """Byte for byte."""
    made = importlib.import_module(f"tasks.{name}.make").make()
    file = pools.ROOT / name / ("pairs.jsonl" if name == "judge-calibration" else "tasks.jsonl")
    assert file.read_bytes() == lines(made)


@pytest.mark.parametrize("name", FAMILIES)
def test_splits_are_large_and_share_no_prompt(name: str) -> None:
    """Ids and prompts are unique over both splits, and so are clusters to one split; at least 40 tasks (12 if judged) each."""
    tasks, found = shipped(name), family(name)
    assert {task.answer_format for task in tasks} == {found.format}
    assert len({task.prompt for task in tasks}) == len(tasks)
    splits = {split: [task for task in tasks if task.split == split] for split in ("dev", "heldout")}
    assert all(len(part) >= (40 if found.check else 12) for part in splits.values())
    clusters = {split: {task.cluster for task in part} - {None} for split, part in splits.items()}
    assert not clusters["dev"] & clusters["heldout"]
    assert {task.ground_truth for task in tasks} == ({"exact"} if found.check else {"judged"})


@pytest.mark.parametrize("name", [*FAMILIES, "judge-calibration"])
def test_each_family_says_where_it_comes_from(name: str) -> None:
    """Its README names source, licence and ground truth, and the rates of the embedded model where answers are checked."""
    text = (pools.ROOT / name / "README.md").read_text(encoding="utf-8")
    wanted = ["## Source", "CC0", "## Ground truth"] + (
        ["## Measured", "qwen2.5-coder-0.5b"] if name in CHECKED else []
    )
    assert not [part for part in wanted if part not in text]


@pytest.mark.parametrize("name", CHECKED)
def test_right_answers_pass_and_wrong_ones_fail(name: str) -> None:
    """For every task of both splits, read by the one reader, strictly and inside of prose; wrong ones are well-formed."""
    found = family(name)
    assert found.check is not None
    for task in shipped(name):
        reading = read(found.right(task), task.answer_format)
        assert reading.strict
        assert found.check(task, reading).passed, task.id
        assert found.check(task, read(f"Let me see.\n\n{found.right(task)}\n\nDone.", task.answer_format)).passed, (
            task.id
        )
        for seed in range(3):
            wrong = read(found.wrong(task, random.Random(seed)), task.answer_format)
            assert wrong.value is not None
            assert not found.check(task, wrong).passed, task.id
        assert found.wrong(task, random.Random(5)) == found.wrong(task, random.Random(5))


def test_a_judged_family_has_no_check_but_texts_for_scripted_models() -> None:
    """Its answers are read by judges alone; a useful and a useless text are at hand for every question."""
    found = family("advice")
    assert (found.check, found.visible, found.format) == (None, None, "text")
    for task in shipped("advice"):
        right, wrong = found.right(task), found.wrong(task, random.Random(1))
        assert len(right) > len(wrong) > 0
        assert read(right, "text").strict


@pytest.mark.parametrize("name", ["countdown", "extraction"])
def test_visible_checks_use_the_prompt_alone(name: str) -> None:
    """Right answers pass it; it is handed a question, which has no key, and its feedback holds nothing of the reference."""
    found = family(name)
    assert found.visible is not None
    for task in shipped(name):
        question = pools.question(task)
        assert found.visible(question, found.right(task)).passed, task.id
        for text in ("", "Answer: 1 + 1", "{}", '{"a": 1}', found.wrong(task, random.Random(1))):
            other = found.visible(pools.question(task.model_copy(update={"reference": "something else"})), text)
            assert found.visible(question, text) == other


def test_given_is_what_the_prompt_states() -> None:
    """The machine-readable copy holds no number, key or form that the prompt does not show."""
    for task in shipped("countdown"):
        stated = [int(number) for number in re.findall(r"\d+", task.prompt)]
        assert task.given is not None
        assert stated == [*task.given["numbers"], task.given["target"]]  # type: ignore[misc]
    words = importlib.import_module("tasks.extraction.check").words
    for task in shipped("extraction"):
        stated_fields = re.findall(r"^- (\w+): (.*?);", task.prompt, re.MULTILINE)
        assert task.given is not None
        assert isinstance(fields := task.given["fields"], dict)
        assert sorted(stated_fields) == sorted((key, words(form)) for key, form in fields.items())


# --- countdown -------------------------------------------------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else None,
}


def reachable(numbers: tuple[Fraction, ...]) -> set[Fraction]:
    """All values of expressions over any of the numbers, each at most once, by brute force over pairs."""
    found = set(numbers)
    for i, j in itertools.permutations(range(len(numbers)), 2):
        rest = tuple(number for place, number in enumerate(numbers) if place not in (i, j))
        for operation in OPERATIONS.values():
            value = operation(numbers[i], numbers[j])
            if value is not None:
                found |= reachable((value, *rest))
    return found


def test_countdown_targets_can_be_reached() -> None:
    """A search that knows nothing of the generator or the checker finds every target, and none among the numbers."""
    for task in shipped("countdown"):
        assert task.given is not None
        numbers = tuple(Fraction(number) for number in task.given["numbers"])  # type: ignore[union-attr, arg-type]
        target = Fraction(task.given["target"])  # type: ignore[arg-type]
        assert target not in numbers
        assert target in reachable(numbers), task.id


def countdown(value: str, numbers: tuple[int, ...] = (2, 3, 8), target: int = 14) -> str:
    """The visible feedback to a value; "ok" where it passes."""
    question = Question(
        id="countdown/x", prompt="?", answer_format="line", given={"numbers": [*numbers], "target": target}
    )
    found = family("countdown")
    assert found.visible is not None
    checked = found.visible(question, f"Answer: {value}")
    return "ok" if checked.passed else checked.feedback


@pytest.mark.parametrize(
    "value",
    [
        "2 * 3 + 8", "8+3*2", "(2*3)+8", "2 * 3 + 8 = 14", "14 = 2 * 3 + 8", "\\(2 \\times 3 + 8 = 14\\)", "$2 × 3 + 8$",
        "[2 * 3] + 8", "2 x 3 + 8.", "`2 * 3 + 8`", "2 * 3 + 8 (six and eight)", "8 + 2 · 3", "2*(8-(3-2/2))",
    ],
)  # fmt: skip
def test_countdown_takes_equivalent_writings(value: str) -> None:
    """Signs of print and LaTeX, an equation with the target, a remark in brackets."""
    numbers = (2, 3, 8, 2, 2) if "2/2" in value else (2, 3, 8)
    target = 12 if "2/2" in value else 14
    assert countdown(value, numbers, target) == "ok"


@pytest.mark.parametrize(
    ("value", "feedback"),
    [
        ("2 + 3 + 8", "gives 13, not 14"),
        ("8 + 6", "uses 6 beyond the given numbers 2, 3, 8"),
        ("8 + 2 + 2 + 2", "uses 2, 2 beyond"),
        ("14", "uses 14 beyond"),
        ("14 = 14", "uses 14 beyond"),
        ("8 / 3", "gives 8/3, not 14"),
        ("8 / (2 - 2)", "divides by zero"),
        ("2 * 3 + 8 = 15", "one side has to be 14"),
        ("2 * 3 = 6 + 8 = 14", "one side has to be 14"),
        ("8 ** 2", "an operator that is not allowed"),
        ("8 // 2", "an operator that is not allowed"),
        ("-2 + 8 + 8", "an operator that is not allowed"),
        ("8(3)", "an operator that is not allowed"),
        ("08 + 3", "it cannot be parsed"),
        ("8 +", "it cannot be parsed"),
        ("8.0 + 6", "other signs"),
        ("__import__('os').system('true')", "other signs"),
        ("9**9**9**9", "an operator that is not allowed"),
        ("(" * 150 + "8", "it cannot be parsed"),
        ("8" * 5000, "longer than 200"),
        ("the numbers", "other signs"),
    ],
)
def test_countdown_refuses_everything_else(value: str, feedback: str) -> None:
    """Wrong values, foreign or repeated numbers, other operators and other code, each named; nothing is executed."""
    assert feedback in countdown(value)


@quick
@given(st.text(alphabet="0123456789+-*/()= x×÷\\_.[]$", max_size=60) | st.text(max_size=30))
def test_countdown_never_raises(value: str) -> None:
    """Any text gets a verdict."""
    assert isinstance(countdown(value), str)


# --- sorting and extraction ------------------------------------------------------------------------------------------


def test_sorting_references_are_sorted_prompts() -> None:
    """The key holds exactly the prompt's items in ascending order; numbers compare as numbers."""
    for task in shipped("sorting"):
        items = [item.strip(" .]") for item in re.split(r"[:\[,]", task.prompt)[1:] if item.strip(" .]")]
        numeric = all(item.isdigit() for item in items)
        assert task.reference == (sorted(items, key=int) if numeric else sorted(items))


@pytest.mark.parametrize(
    "value",
    [
        "12, 30, 45", "12 30 45", "[12, 30, 45]", "12 < 30 < 45", "12, 30 and 45.", "12 → 30 → 45", "['12', '30', '45']",
        "The sorted list is [12, 30, 45].", "in order: 12, 30, 45", "12,30,45",
    ],
)  # fmt: skip
def test_sorting_takes_lists_however_they_are_separated(value: str) -> None:
    """Commas, brackets, quotes, arrows, an introduction on the line."""
    task = Task.model_validate_json(line(reference=["12", "30", "45"]))
    check = family("sorting").check
    assert check is not None
    assert check(task, read(f"Answer: {value}", "line")).passed


@pytest.mark.parametrize(
    ("value", "score", "feedback"),
    [
        ("12, 45, 30", 1 / 3, "not in order"),
        ("12, 30", 0.0, "exactly the given items"),
        ("12, 30, 45, 45", 0.0, "exactly the given items"),
        ("12, 30, 46", 2 / 3, "exactly the given items"),
        ("123045", 0.0, "exactly the given items"),
        ("", 0.0, "exactly the given items"),
    ],
)
def test_sorting_fails_what_is_not_the_list(value: str, score: float, feedback: str) -> None:
    """Order, missing, doubled, foreign items; the score is the share of right places."""
    task = Task.model_validate_json(line(reference=["12", "30", "45"]))
    check = family("sorting").check
    assert check is not None
    checked = check(task, read(f"Answer: {value}", "line"))
    assert not checked.passed
    assert checked.score == pytest.approx(score)
    assert feedback in checked.feedback


def test_extraction_references_stand_in_their_notices() -> None:
    """Each value is found in the notice's words by rules other than the generator's: dates and times parsed back."""
    for task in shipped("extraction"):
        notice = task.prompt.split("Notice: ")[1].split("\n\nFields:")[0]
        assert isinstance(task.reference, dict)
        for key, value in task.reference.items():
            if key in ("date", "due"):
                day = datetime.fromisoformat(str(value))
                forms = {f"{day.day} {day:%B %Y}", f"{day:%B} {day.day}, {day.year}"}
                assert any(form in notice for form in forms), task.id
            elif key == "start":
                clock = datetime.strptime(str(value), "%H:%M")
                assert any(form in notice for form in (f"{clock:%I:%M %p}".lstrip("0").lower(), str(value))), task.id
            elif key == "paid":
                said = ("in advance", "sent last week", "is settled", "received")
                assert value == any(part in notice for part in said), task.id
            else:
                assert re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", notice, re.IGNORECASE), (task.id, key)


def extraction(**changes: object) -> tuple[bool, bool, float | None, str]:
    """Visible verdict, scoring verdict, score and feedback to a repair ticket's fields with changes (None drops one)."""
    fields = {
        "who": "text",
        "count": "integer",
        "price": "number",
        "done": "boolean",
        "day": "date",
        "at": "time",
        "level": "low|high",
    }
    key = {
        "who": "Ada Low",
        "count": 3,
        "price": 2.5,
        "done": False,
        "day": "2027-02-03",
        "at": "09:05",
        "level": "low",
    }
    task = Task.model_validate_json(line(answer_format="json", given={"fields": fields}, reference=key))
    text = json.dumps({name: value for name, value in (key | changes).items() if value is not None})
    found = family("extraction")
    assert found.visible is not None
    assert found.check is not None
    visible, checked = found.visible(pools.question(task), text), found.check(task, read(text, "json"))
    return visible.passed, checked.passed, checked.score, checked.feedback


@pytest.mark.parametrize(
    "changes", [{}, {"who": " ada  low."}, {"who": "The Ada Low"}, {"count": 3.0}, {"price": 2.50}]
)
def test_extraction_compares_values_not_spellings(changes: dict[str, object]) -> None:
    """Case, blanks, an article, a full stop, and the writing of a number do not matter."""
    assert extraction(**changes)[:3] == (True, True, 1.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"who": "Ada"},
        {"count": 4},
        {"price": 2.51},
        {"done": True},
        {"day": "2027-02-04"},
        {"at": "10:05"},
        {"level": "high"},
    ],
)
def test_extraction_visible_check_does_not_know_values(changes: dict[str, object]) -> None:
    """A wrong value of the right form passes the visible check and fails the scoring one, by one field of seven."""
    visible, passed, score, feedback = extraction(**changes)
    assert (visible, passed, score) == (True, False, pytest.approx(6 / 7))
    assert feedback == "The form is right, but not every value is what the notice says."


@pytest.mark.parametrize(
    ("changes", "feedback"),
    [
        ({"who": None}, "The key 'who' is missing."),
        ({"extra": 1}, "The key 'extra' was not asked for."),
        ({"who": " "}, "'who' is not a string that is not empty."),
        ({"who": 3}, "'who' is not a string that is not empty."),
        ({"count": "3"}, "'count' is not an integer."),
        ({"count": 3.5}, "'count' is not an integer."),
        ({"count": True}, "'count' is not an integer."),
        ({"price": "2.5"}, "'price' is not a number."),
        ({"done": "false"}, "'done' is not true or false."),
        ({"done": 0}, "'done' is not true or false."),
        ({"day": "3 February 2027"}, "'day' is not a string YYYY-MM-DD."),
        ({"day": "2027-02-30"}, "'day' is not a string YYYY-MM-DD."),
        ({"at": "9:05"}, "'at' is not a string HH:MM, 24 hours."),
        ({"at": "24:00"}, "'at' is not a string HH:MM, 24 hours."),
        ({"level": "Low"}, '\'level\' is not one of "low", "high".'),
        ({"level": ["low"]}, '\'level\' is not one of "low", "high".'),
    ],
)
def test_extraction_names_the_first_breach_of_form(changes: dict[str, object], feedback: str) -> None:
    """Keys, types and forms fail both checks alike, in words that give away no value."""
    visible, passed, _, said = extraction(**changes)
    assert (visible, passed, said) == (False, False, feedback)


def test_extraction_scores_no_number_for_a_truth_value() -> None:
    """0 is not false and true is not 1, also where fields are only counted."""
    assert extraction(done=0)[2] == pytest.approx(6 / 7)
    assert extraction(count=True)[2] == pytest.approx(6 / 7)


@pytest.mark.parametrize("text", ["[1]", "no object", ""])
def test_extraction_wants_an_object(text: str) -> None:
    """An array or prose is none, and the checker does not raise."""
    found, task = family("extraction"), shipped("extraction")[0]
    assert found.check is not None
    assert found.check(task, read(text, "json")).feedback == "There is no JSON object."


# --- judge calibration -----------------------------------------------------------------------------------------------

PAIRS = pools.load_pairs(pools.ROOT / "judge-calibration" / "pairs.jsonl")


def is_right(question: str, text: str) -> bool:
    """Is a text right by the question's own words? Written apart from the generator."""
    if found := re.fullmatch(r"What is (\d+) times (\d+)\?", question):
        return re.findall(r"\d+", text) == [str(int(found[1]) * int(found[2]))]
    if found := re.fullmatch(r"Put into alphabetical order: (.*)\.", question):
        listed = found[1].split(", ")
        return [word for word in re.findall(r"[a-z]+", text) if word in listed] == sorted(listed)
    if found := re.fullmatch(r"How many letters has '(\w+)'\?", question):
        return re.findall(r"\d+", text) == [str(len(found[1]))]
    if found := re.fullmatch(r"Which room is it\? Notice: .* in room (\d+), .*", question):
        return re.findall(r"\d+", text) == [found[1]]
    assert "exactly three words" in question
    return len(text.split()) == 3


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
def test_labels_follow_from_the_question(pair: LabelledPair) -> None:
    """An independent computation finds the labelled text right and the other wrong, or both right in a tie."""
    expected = {"left": (True, False), "right": (False, True), "tie": (True, True)}[pair.label]
    assert (is_right(pair.question, pair.left), is_right(pair.question, pair.right)) == expected


def test_calibration_pairs_are_balanced_short_and_distinct() -> None:
    """As many better texts left as right in each stratum, at least 12 ties, at most about 120 tokens, no question twice."""
    assert len(PAIRS) >= 60
    assert len({pair.question for pair in PAIRS}) == len(PAIRS)
    for stratum in ("obvious", "subtle", "adversarial"):
        labels = [pair.label for pair in PAIRS if pair.stratum == stratum]
        assert labels.count("left") == labels.count("right")
    assert sum(pair.label == "tie" for pair in PAIRS) >= 12
    assert max(len(pair.question + pair.left + pair.right) for pair in PAIRS) < 4 * 120
    longer = [len(p.left) > len(p.right) for p in PAIRS if p.stratum == "adversarial" and p.label == "right"]
    assert all(longer), "an adversarial text is longer than the right one"
