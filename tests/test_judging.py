"""Judging: closed verdicts, both orders, blind prompts, failures that are no verdicts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from harness import prompts
from harness.errors import Cause
from harness.judging import SCHEMA, letter_mass, verdict_of
from harness.records import Call, Reply, TokenLogprobs, Verdict
from harness.stored import Run
from tests.build import ALL_ARMS, claim, run_study, write_study


def reply(text: str, finish: str = "stop") -> Reply:
    return Reply(text=text, finish=finish)


GOOD = '{"choice": "first", "reason": "it is right"}'


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        (GOOD, "first"),
        ('{"reason": "both", "choice": "tie"}', "tie"),
        ("I looked at both.\nVerdict: second", "second"),
        ("**Verdict:** abstain.", "abstain"),
        ("Verdict: first\nAs said,\nverdict: FIRST", "first"),
    ],
)
def test_a_verdict_is_read_from_the_schema_or_one_anchored_line(text: str, choice: str) -> None:
    """Case and emphasis do not matter; the choice is of the closed set."""
    assert verdict_of(reply(text)).choice == choice


@pytest.mark.parametrize(
    ("text", "finish", "why"),
    [
        ("Verdict: first\nVerdict: second", "stop", "two different verdicts"),
        ("The first one is better.", "stop", "no verdict"),
        ("Verdict: third", "stop", "an unknown label: third"),
        ("he wrote 'Verdict: first' in his answer", "stop", "no verdict"),
        ('{"reason": "x"}', "stop", "no choice among"),
        ('{"choice": true, "reason": "x"}', "stop", "no choice among"),
        ('{"choice": "First", "reason": "x"}', "stop", "no choice among"),
        ('{"choice": "first"}', "stop", "no reason"),
        ('{"winner": "first", "reason": "x"}', "stop", "no choice among"),
        (GOOD, "length", "cut by its length"),
        ("", "stop", "no verdict"),
        ("[" * 5000, "stop", "no verdict"),
        ("true", "stop", "no verdict"),
    ],
)
def test_what_is_no_verdict_forms_none(text: str, finish: str, why: str) -> None:
    """Two verdicts, quotations, unknown labels, missing keys and cut replies are not verdicts, and not ties."""
    formed = verdict_of(reply(text, finish))
    assert formed.choice is None
    assert why in str(formed.broken)


def test_a_verdict_line_stays_linear_on_long_text() -> None:
    """A hostile reply costs no quadratic time."""
    import time

    began = time.perf_counter()
    verdict_of(reply("verdict" * 20_000))
    verdict_of(reply("*_ \t" * 20_000))
    assert time.perf_counter() - began < 1


def test_letter_probabilities_are_summed_over_spellings() -> None:
    """ " A", "A" and "a" are one label; other tokens take their mass."""
    top = {"A": math.log(0.5), " A": math.log(0.2), "b": math.log(0.1), "The": math.log(0.2)}
    mass = letter_mass(Reply(text="A", logprobs=(TokenLogprobs(top=top),)))
    assert mass is not None
    assert mass == pytest.approx((0.7, 0.1))
    assert letter_mass(Reply(text="A")) is None
    assert letter_mass(Reply(text="x", logprobs=(TokenLogprobs(top={"x": 0.0}),))) == (0.0, 0.0)


# --- through a study -------------------------------------------------------------------------------------------------


def judged(tmp_path: Path, judge: dict[str, Any], **spec: Any) -> Run:
    """A study in which a scripted judge reads two arms on open questions."""
    models = {
        "solver": {"name": "scripted/skill", "script": {"skill": 0.5}},
        "judge": {"name": "scripted/skill", "max_tokens": 200, "script": judge},
    }
    path = write_study(
        tmp_path,
        arms={"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"]},
        pools=[{"family": "advice", "sample": 4}],
        models=models,
        judges={"j": {"models": ["judge"], "calibration": "judge-calibration", "calibration_sample": 8, **spec}},
        claims=[claim("best3", "single", "preference")],
    )
    return run_study(path, tmp_path / "results")


def verdicts(run: Run) -> list[Verdict]:
    return [entry for entry in run.log.entries if isinstance(entry, Verdict)]


def test_every_pair_is_read_in_both_orders_by_the_same_model(tmp_path: Path) -> None:
    """The order that is read first is drawn."""
    run = judged(tmp_path, {"skill": 1.0})
    read = verdicts(run)
    assert len(read) == 2 * (4 + 8)
    for pair in run.plan.pairs:
        both = [v for v in read if v.subject == pair.id]
        assert {v.order for v in both} == {"left_first", "right_first"}
        assert len({v.model for v in both}) == 1
    assert {v.order for v in read[::2]} == {"left_first", "right_first"}


def test_a_perfect_judge_agrees_with_every_label(tmp_path: Path) -> None:
    """In both orders, mapped back to the sides."""
    run = judged(tmp_path, {"skill": 1.0})
    labels = {pair.id: pair.label for pair in run.plan.pairs if pair.label}
    for verdict in verdicts(run):
        if verdict.subject in labels:
            side = {
                "left_first": {"first": "left", "second": "right"},
                "right_first": {"first": "right", "second": "left"},
            }
            assert side[verdict.order].get(str(verdict.choice), verdict.choice) == labels[verdict.subject]


def test_judge_prompts_are_blind(tmp_path: Path) -> None:
    """Question and two quoted texts in the frozen template, and nothing else: no arm, model, trial or order name."""
    run = judged(tmp_path, {"skill": 1.0})
    template = prompts.load("judge_letters")
    for call in (e for e in run.log.entries if isinstance(e, Call) and e.role == "judge"):
        assert call.template is not None
        assert call.template[0].text == template
        assert set(call.saw) == {"question", "first", "second"}
        assert call.json_schema == SCHEMA
        text = call.messages[0].text
        assert not any(word in text for word in ("best3", "single", "scripted", "left_first", "/r1", "calibration"))


def test_judging_and_calibration_are_paid_from_their_own_buckets(tmp_path: Path) -> None:
    """Deliberation is what the arms did."""
    run = judged(tmp_path, {"skill": 1.0})
    buckets = {e.bucket for e in run.log.entries if isinstance(e, Call) and e.role == "judge"}
    assert buckets == {"judging", "calibration"}


def test_a_judge_that_is_down_forms_no_verdict_and_ties_nothing(tmp_path: Path) -> None:
    """Every reading fails with its cause; none becomes a tie."""
    run = judged(tmp_path, {"faults": {"share": 1.0, "kinds": ["server_error"], "persistent": True}})
    assert {(v.formed, v.choice, v.cause) for v in verdicts(run)} == {(False, None, Cause.provider)}


def test_an_unreadable_reply_gets_one_repair_and_its_verdict_is_degraded(tmp_path: Path) -> None:
    """The repair quotes the reply; what it yields is marked; no third attempt."""
    rules = [
        {"role": "judge", "contains": "Restate the same verdict", "text": GOOD},
        {"role": "judge", "text": "I like the first."},
        {"text": "Answer: words"},
    ]
    path = write_study(
        tmp_path,
        arms={"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"]},
        pools=[{"family": "advice", "sample": 1}],
        models={"solver": {"name": "scripted/file", "script": {"replies": "replies.jsonl"}}},
        judges={"j": {"models": ["solver"], "same_family": "labelled"}},
        claims=[claim("best3", "single", "preference")],
    )
    (path.parent / "replies.jsonl").write_text("\n".join(json.dumps(rule) for rule in rules))
    run = run_study(path, tmp_path / "results")
    assert [(v.formed, v.degraded, v.choice) for v in verdicts(run)] == [(True, True, "first")] * 2
    repairs = [e for e in run.log.entries if isinstance(e, Call) and e.purpose.endswith("/repair")]
    assert len(repairs) == 2
    assert prompts.quote("I like the first.") in repairs[0].messages[0].text


def test_a_pair_with_a_failed_side_is_not_read(tmp_path: Path) -> None:
    """No judge is called where there is no second answer."""
    models = {
        "solver": {
            "name": "scripted/skill",
            "script": {"faults": {"share": 1.0, "kinds": ["overflow"], "persistent": True}},
        },
        "judge": {"name": "scripted/skill"},
    }
    path = write_study(
        tmp_path,
        arms={"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"]},
        pools=[{"family": "advice", "sample": 3}],
        models=models,
        judges={"j": {"models": ["judge"]}},
        claims=[claim("best3", "single", "preference")],
    )
    assert verdicts(run_study(path, tmp_path / "results")) == []


def test_a_judge_by_token_probabilities_reads_p_first(tmp_path: Path) -> None:
    """Another frozen method: probabilities instead of a letter, no repair."""
    run = judged(tmp_path, {"skill": 1.0}, method="logprobs")
    assert all(v.formed and v.p_first is not None and v.choice is None for v in verdicts(run))
    labels = {pair.id: pair.label for pair in run.plan.pairs if pair.label}
    for verdict in verdicts(run):
        label = labels.get(verdict.subject)
        if label in ("left", "right"):
            assert verdict.p_first == pytest.approx(
                0.9 if (label == "left") == (verdict.order == "left_first") else 0.1
            )


def test_a_biased_judge_names_the_first_text_in_both_orders(tmp_path: Path) -> None:
    """The scripted bias is what the reliability analysis has to find."""
    run = judged(tmp_path, {"skill": 1.0, "first_bias": 1.0})
    assert {v.choice for v in verdicts(run)} == {"first"}
