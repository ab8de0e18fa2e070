"""From receipts to findings: denominators, bounds, decisions, and the same bytes twice."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import claims, contrasts, dataset, findings, pairs, planning, usage
from analysis.dataset import Amount
from harness import study
from harness.errors import DriftError, FreezeError, StudyError
from harness.records import Answered, Failed, JudgeSpec, Pair, Verdict
from harness.stored import Run
from tests.build import ALL_ARMS, claim, run_study, write_study
from tests.test_run import ALL_FAULTS, judged

Found = dict[str, Any]


def found_of(run: Run) -> Found:
    return findings.findings(run, findings.rules_for(run, None, exploratory=False))


def two_arms(tmp_path: Path, skill: Any = 0.5, **more: Any) -> Run:
    """single and best3 over a pool, with a claim."""
    script = {"skill": skill, **more.pop("script", {})}
    solver = {"name": "scripted/skill", "max_tokens": 200, "script": script, **more.pop("solver", {})}
    claims_ = more.pop("claims", [claim("best3", "single")])
    pools = more.pop("pools", [{"family": "countdown", "sample": 12}])
    return run_study(
        write_study(tmp_path, models={"solver": solver}, claims=claims_, pools=pools, **more), tmp_path / "results"
    )


# --- the frame -------------------------------------------------------------------------------------------------------


def test_the_frame_has_a_row_a_planned_trial_and_documented_columns(tmp_path: Path) -> None:
    """Failures are rows; every column says its meaning."""
    run = two_arms(tmp_path, script={"faults": {"share": 0.5, "kinds": ["overflow"], "persistent": True}})
    frame = dataset.trials_frame(run)
    assert len(frame) == len(run.plan.trials) == 24
    assert list(frame.columns) == list(dataset.COLUMNS)
    assert set(frame["outcome"]) == {"answered", "failed"}
    assert set(frame.loc[frame["outcome"] == "failed", "cause"]) == {"overflow"}
    assert (frame["tokens_out_low"] <= frame["tokens_out_high"]).all()


def test_unknown_usage_is_a_bound_and_never_zero(tmp_path: Path) -> None:
    """Without usage a total says at least, with the token cap as its most."""
    run = two_arms(tmp_path, script={"faults": {"share": 1.0, "kinds": ["null_usage"], "persistent": True}})
    total = found_of(run)["usage"]["total"]
    calls = total["calls"]
    assert total["unknown"] == calls == 48
    assert total["tokens_out"] == [0.0, 200.0 * calls]
    assert total["tokens_in"] == [0.0, "inf"]
    assert total["usd"] == [0.0, 0.0]
    assert usage.said(Amount(5, math.inf)) == "at least 5"
    assert usage.said(Amount(5, 9), " tokens") == "at least 5 tokens, at most 9 tokens"
    assert usage.said(Amount(5, 5)) == "5"


def test_unknown_prices_leave_money_open(tmp_path: Path) -> None:
    """Without usage a priced call costs at least what is known."""
    price = {"tokens_in": 0.001, "tokens_out": 0.01, "source": "t"}
    run = two_arms(
        tmp_path,
        solver={"price": price},
        script={"faults": {"share": 0.5, "kinds": ["null_usage"], "persistent": True}},
    )
    low, high = found_of(run)["usage"]["total"]["usd"]
    assert low > 0
    assert high == "inf"


def test_failures_stay_in_the_denominator(tmp_path: Path) -> None:
    """A perfect solver that fails on some tasks does not solve all; leaving failures out is a row with a warning."""
    run = two_arms(tmp_path, skill=1.0, script={"faults": {"share": 0.4, "kinds": ["overflow"], "persistent": True}})
    found = found_of(run)
    single = found["arms"]["single"]
    assert single["checked"] == 12
    assert single["solved"] == single["answered"] < 12
    rows = {row["assumption"]: row for row in found["sensitivity"]}
    assert rows["all failures left out"]["note"] == "conditions on the outcome: what fails may be what is hard"
    assert rows["all failures left out"]["tasks"] < 12


def test_a_study_full_of_faults_says_at_least(tmp_path: Path) -> None:
    """Every trial by cause, totals that never look complete."""
    faults = {"share": 0.5, "kinds": ALL_FAULTS, "retry_after": 0.01, "persistent": True}
    run = two_arms(tmp_path, solver={"timeout_seconds": 0.05, "attempts": 2}, script={"faults": faults})
    found = found_of(run)
    outcomes = found["outcomes"]
    assert outcomes["planned"] == 24 == outcomes["answered"] + outcomes["failed"]
    assert sum(outcomes["by_cause"].values()) == outcomes["failed"] > 0
    from analysis.report import words

    assert "at least" in words.cost(found)
    assert any("say at least" in limit for limit in found["limits"])


# --- claims ----------------------------------------------------------------------------------------------------------


def test_a_large_effect_is_supported_and_its_mirror_contradicted(tmp_path: Path) -> None:
    """A solver that is right against one that is wrong, on enough tasks."""
    models = {
        "good": {"name": "scripted/skill", "script": {"skill": 1.0}},
        "bad": {"name": "scripted/skill", "script": {"skill": 0.0}},
    }
    arms = {
        "up": {"kind": "single", "roles": {"solver": "good"}},
        "down": {"kind": "single", "roles": {"solver": "bad"}},
    }
    both = [claim("up", "down"), claim("down", "up")]
    path = write_study(tmp_path, models=models, arms=arms, claims=both, pools=[{"family": "countdown", "sample": 12}])
    found = found_of(run_study(path, tmp_path / "results"))
    first, second = found["claims"]
    assert (first["decision"], second["decision"]) == ("supported", "contradicted")
    one, other = first["estimates"][0], second["estimates"][0]
    assert (one["point_low"], one["low"], one["high"]) == (-other["point_high"], -other["high"], -other["low"])
    assert one["low"] < 1.0 == one["high"]


def test_adding_an_arm_changes_no_other_number(tmp_path: Path) -> None:
    """Estimates of a claim are a function of its own receipts."""
    few = found_of(two_arms(tmp_path / "a"))
    arms = {"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"], "reflection": ALL_ARMS["reflection"]}
    more = found_of(two_arms(tmp_path / "b", arms=arms))
    assert few["claims"][0]["estimates"] == more["claims"][0]["estimates"]
    assert few["arms"]["best3"] == more["arms"]["best3"]


def test_a_list_of_baselines_must_be_beaten_one_by_one(tmp_path: Path) -> None:
    """Supported against both or not at all."""
    models = {
        name: {"name": "scripted/skill", "script": {"skill": s}} for name, s in (("a", 1.0), ("b", 0.0), ("c", 1.0))
    }
    arms = {name: {"kind": "single", "roles": {"solver": name}} for name in models}
    both = claim("a", "b") | {"baseline": ["b", "c"]}
    path = write_study(tmp_path, models=models, arms=arms, claims=[both], pools=[{"family": "countdown", "sample": 12}])
    (one,) = found_of(run_study(path, tmp_path / "results"))["claims"]
    assert [part["decision"] for part in one["estimates"]] == ["supported", "inconclusive"]
    assert one["decision"] == "inconclusive"


def test_cost_claims_are_ratios_that_hold_for_all_that_is_unknown(tmp_path: Path) -> None:
    """Three calls against one are a third; unknown usage opens the interval instead of shrinking it."""
    cheap = [claim("single", "best3", "calls"), claim("single", "best3", "tokens_out")]
    known = found_of(two_arms(tmp_path / "a", claims=cheap))
    calls, tokens = known["claims"]
    assert calls["estimates"][0]["point_low"] == 3.0
    assert calls["decision"] == tokens["decision"] == "supported"
    unknown = {"faults": {"share": 0.6, "kinds": ["null_usage"], "persistent": True}}
    bounded = found_of(two_arms(tmp_path / "b", claims=cheap, script=unknown))["claims"][1]
    part = bounded["estimates"][0]
    assert part["point_low"] < part["point_high"]
    assert bounded["decision"] == "inconclusive"


def test_an_open_run_cannot_be_assessed(tmp_path: Path) -> None:
    """Planned trials without an outcome make a claim not assessable, never a smaller study."""
    from harness import campaign, stored
    from harness.errors import StoppedError

    path = write_study(tmp_path, claims=[claim("best3", "single")], budget={"calls": 7})
    with pytest.raises(StoppedError):
        run_study(path, tmp_path / "results")
    found = found_of(stored.load(campaign.latest(tmp_path / "results", "small")))
    assert found["claims"][0]["decision"] == "not_assessable"
    assert found["outcomes"]["pending"] > 0
    assert "The run is not done" in found["limits"][0]


def test_few_tasks_are_said_to_be_few(tmp_path: Path) -> None:
    """Below five tasks even a clean sweep cannot reach significance."""
    found = found_of(two_arms(tmp_path, pools=[{"family": "countdown", "sample": 4}]))
    assert any("even a clean sweep cannot reach significance" in limit for limit in found["limits"])
    assert found["power"]["best3-solved"]["supportable"] is False


def test_the_usual_bootstrap_stands_beside_and_decides_nothing(tmp_path: Path) -> None:
    """Percentile and BCa, exact on the lattice; a degenerate one is marked."""
    found = found_of(two_arms(tmp_path, skill=1.0))
    rows = {row["assumption"]: row for row in found["sensitivity"]}
    assert (rows["percentile bootstrap"]["low"], rows["percentile bootstrap"]["high"]) == (0.0, 0.0)
    assert "cannot see uncertainty" in rows["percentile bootstrap"]["note"]
    assert rows["BCa bootstrap"]["low"] is None
    assert not any(rows[name]["flips"] for name in ("percentile bootstrap", "BCa bootstrap", "exact sign-flip test"))
    part = found["claims"][0]["estimates"][0]
    assert part["low"] < 0 < part["high"]


def test_contrasts_that_no_claim_makes_are_apart(tmp_path: Path) -> None:
    """Exploratory, adjusted by the false discovery rate, and none of them a claim."""
    arms = {name: ALL_ARMS[name] for name in ("single", "best3", "reflection", "repair")}
    run = two_arms(tmp_path, arms=arms, skill=0.4)
    data = dataset.build(run)
    made = contrasts.explore(data, 0.95)
    assert {(c.arm, c.baseline) for c in made} == {("reflection", "single"), ("repair", "single")}
    assert all(c.p_adjusted >= c.p for c in made)


def test_several_claims_share_the_level(tmp_path: Path) -> None:
    """Claims about differences and about costs split it by their number; each interval is wider than alone."""
    alone = found_of(two_arms(tmp_path / "a"))["claims"][0]["estimates"][0]
    arms = {name: ALL_ARMS[name] for name in ("single", "best3", "repair")}
    many = [claim("best3", "single"), claim("repair", "single"), claim("single", "best3", "calls")]
    together = found_of(two_arms(tmp_path / "b", arms=arms, claims=many))["claims"]
    assert together[0]["estimates"][0]["level"] > alone["level"] == 0.95
    assert together[2]["estimates"][0]["level"] == pytest.approx(1 - 0.05 / 3)


# --- pairs -----------------------------------------------------------------------------------------------------------

PAIR = Pair(
    id="p", source="trials", judge="j", pool="f", task="t", repeat=1, arm="a", baseline="b", left="l", right="r"
)
SPEC = JudgeSpec(models=("m",))


def answered(trial: str) -> Answered:
    from harness.records import Answer, Reading

    reading = Reading(format="text", value="x", strict=True)
    return Answered(trial=trial, answer=Answer(text="x"), reading=reading, passed=None, strict_passed=None, seconds=0.0)


def state(left_first: str | None, right_first: str | None, left: Any = None, right: Any = None) -> str:
    """The state of a pair from its two readings."""
    verdicts = [
        Verdict(
            subject="p", judge="j", model="m", order=order, method="letters", formed=choice is not None, choice=choice
        )  # type: ignore[arg-type]
        for order, choice in (("left_first", left_first), ("right_first", right_first))
    ]
    return pairs.read(PAIR, "m", verdicts, {"l": left or answered("l"), "r": right or answered("r")}, SPEC).state


@pytest.mark.parametrize(
    ("left_first", "right_first", "wanted"),
    [
        ("first", "second", "win"),
        ("second", "first", "loss"),
        ("tie", "tie", "tie"),
        ("first", "first", "inconsistent"),
        ("second", "second", "inconsistent"),
        ("first", "tie", "inconsistent"),
        ("abstain", "second", "abstained"),
        ("first", None, "failed"),
        (None, None, "failed"),
    ],
)
def test_a_pair_is_decided_only_when_both_orders_point_at_the_same_text(
    left_first: str, right_first: str, wanted: str
) -> None:
    """Everything else is unresolved: never a tie, never a loss."""
    assert state(left_first, right_first) == wanted


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        ("truncated", None, "loss"),
        (None, "unreadable", "win"),
        ("contract", "refused", "tie"),
        ("provider", None, "failed"),
        (None, "timeout", "failed"),
        ("truncated", "bug", "failed"),
    ],
)
def test_a_side_that_failed_by_its_own_doing_loses_and_infrastructure_leaves_the_pair_open(
    left: str | None, right: str | None, wanted: str
) -> None:
    """Two failures by their own doing tie."""
    sides = [Failed(trial="x", cause=cause, message="", seconds=0.0) if cause else None for cause in (left, right)]  # type: ignore[arg-type]
    assert state("first", "second", *sides) == wanted


def test_token_probabilities_are_averaged_over_both_orders_with_a_band() -> None:
    """A judge that always prefers the first place by as much is a tie, not a verdict."""

    def by(first: float, second: float) -> str:
        both = [
            Verdict(subject="p", judge="j", model="m", order=order, method="logprobs", formed=True, p_first=p)  # type: ignore[arg-type]
            for order, p in (("left_first", first), ("right_first", second))
        ]
        spec = JudgeSpec(models=("m",), method="logprobs")
        return pairs.read(PAIR, "m", both, {"l": answered("l"), "r": answered("r")}, spec).state

    assert by(0.9, 0.9) == "tie"
    assert by(0.9, 0.1) == "win"
    assert by(0.2, 0.8) == "loss"
    assert by(0.6, 0.4) == "tie"


def panel_state(rule: str, states: list[str], quorum: int | None = None) -> str:
    spec = JudgeSpec(models=tuple(f"m{i}" for i in range(len(states))), rule=rule, quorum=quorum)  # type: ignore[arg-type]
    reads = [pairs.Read(PAIR, f"m{i}", one, None) for i, one in enumerate(states)]  # type: ignore[arg-type]
    (agreed,) = pairs.panel(reads, spec)
    return agreed.state


@pytest.mark.parametrize(
    ("rule", "states", "wanted"),
    [
        ("unanimous", ["win", "win", "win"], "win"),
        ("unanimous", ["win", "win", "tie"], "inconsistent"),
        ("majority", ["win", "win", "loss"], "win"),
        ("majority", ["win", "loss"], "inconsistent"),
        ("majority", ["win", "failed", "failed"], "inconsistent"),
        ("majority", ["failed", "failed", "failed"], "failed"),
        ("majority", ["win", "win", "abstained"], "win"),
    ],
)
def test_a_panel_decides_by_its_frozen_rule(rule: str, states: list[str], wanted: str) -> None:
    """An even split and a lone survivor are unresolved."""
    assert panel_state(rule, states) == wanted


def test_a_quorum_counts_resolved_votes() -> None:
    """Two of three votes are not enough where three are asked."""
    assert panel_state("majority", ["win", "win", "failed"], quorum=3) == "inconsistent"


@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(["win", "loss", "tie", "inconsistent", "failed", "abstained"]), min_size=1, max_size=8))
def test_swapping_the_arms_negates_a_preference(states: list[str]) -> None:
    """To the last bit, bounds included."""
    from analysis import estimate

    flip = {"win": "loss", "loss": "win"}

    def bounded(names: list[str]) -> tuple[float, float, float, float]:
        reads = [pairs.Read(PAIR, "m", name, None) for name in names]  # type: ignore[arg-type]
        low, high = [r.bounds[0] for r in reads], [r.bounds[1] for r in reads]
        found = estimate.preference(low, high)
        return found.point_low, found.point_high, found.low, found.high

    one, other = bounded(states), bounded([flip.get(name, name) for name in states])
    assert one[:2] == (-other[1], -other[0])
    assert one[2:] == pytest.approx((-other[3], -other[2]), abs=1e-9)


def test_a_biased_judge_fails_its_gate_and_carries_no_claim(tmp_path: Path) -> None:
    """It names the first text both times: the report says the bias, and the claim cannot be assessed."""
    parts = judged()
    parts["models"]["judge"]["script"] = {"skill": 1.0, "first_bias": 1.0}
    found = found_of(run_study(write_study(tmp_path, **parts), tmp_path / "results"))
    (judge,) = found["judges"]
    assert not judge["passes"]
    assert judge["inconsistent_first"][0] == judge["inconsistent_first"][1] > 0
    preference = next(one for one in found["claims"] if one["metric"] == "preference")
    assert preference["decision"] == "not_assessable"
    assert "fails its gate" in preference["why"]
    part = preference["estimates"][0]
    assert (part["low"], part["high"]) == (-1.0, 1.0)


def test_a_good_judge_passes_its_gate_and_decides(tmp_path: Path) -> None:
    """With enough labelled pairs its lower limit lies above the gate."""
    parts = judged()
    parts["models"]["judge"]["script"] = {"skill": 1.0}
    parts["judges"] = {"j": {"models": ["judge"], "calibration": "judge-calibration", "calibration_sample": 20}}
    found = found_of(run_study(write_study(tmp_path, **parts), tmp_path / "results"))
    (judge,) = found["judges"]
    assert (judge["right"], judge["pairs"], judge["passes"]) == (20, 20, True)
    preference = next(one for one in found["claims"] if one["metric"] == "preference")
    assert preference["decision"] == "inconclusive"
    assert sum(preference["estimates"][0]["counts"].values()) == 2
    assumptions = {row["assumption"] for row in found["sensitivity"] if row["claim"] == preference["id"]}
    assert {"unresolved: ties", "unresolved: missing at random", "unresolved: worst for the claim"} <= assumptions


def test_an_unmeasured_judge_is_not_believed(tmp_path: Path) -> None:
    """Without labelled pairs there is no gate to pass."""
    parts = judged()
    parts["judges"] = {"j": {"models": ["judge"]}}
    found = found_of(run_study(write_study(tmp_path, **parts), tmp_path / "results"))
    preference = next(one for one in found["claims"] if one["metric"] == "preference")
    assert "was not measured" in preference["why"]


# --- rules and bytes -------------------------------------------------------------------------------------------------


def test_the_same_receipts_give_the_same_bytes_and_two_equal_runs_differ_in_run_alone(tmp_path: Path) -> None:
    """findings.json is a function of receipts and rules; clocks and root hash have a section of their own."""
    path = write_study(tmp_path, **judged())
    first, second = run_study(path, tmp_path / "results"), run_study(path, tmp_path / "results", again=True)
    one, again, other = found_of(first), found_of(first), found_of(second)
    assert findings.dumps(one) == findings.dumps(again)
    assert one["run"] != other["run"]
    assert {k: v for k, v in one.items() if k != "run"} == {k: v for k, v in other.items() if k != "run"}
    assert "NaN" not in findings.dumps(one).decode()


def test_other_rules_are_refused_unless_exploratory(tmp_path: Path) -> None:
    """Named with both values; with the flag the findings say so."""
    run = two_arms(tmp_path)
    rules = tmp_path / "rules.toml"
    rules.write_text("level = 0.8\n")
    with pytest.raises(DriftError, match=r"analysis\.level: frozen 0\.95, now 0\.8"):
        findings.rules_for(run, rules, exploratory=False)
    found = findings.findings(run, findings.rules_for(run, rules, exploratory=True))
    assert found["study"]["exploratory"] == ["analysis.level: frozen 0.95, now 0.8"]
    assert found["claims"][0]["estimates"][0]["level"] == 0.8
    rules.write_text("levle = 0.8\n")
    with pytest.raises(StudyError, match="levle"):
        findings.rules_for(run, rules, exploratory=True)
    rules.write_text("level =\n")
    with pytest.raises(StudyError, match="not a TOML"):
        findings.rules_for(run, rules, exploratory=True)


def test_a_method_version_that_is_gone_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old run reads with --exploratory."""
    run = two_arms(tmp_path)
    newer = {**run.frozen.methods, "interval": "gaffke-midp/2"}
    monkeypatch.setattr(findings, "METHOD_VERSIONS", newer)
    with pytest.raises(DriftError, match="method interval: frozen gaffke-midp/1, now gaffke-midp/2"):
        findings.rules_for(run, None, exploratory=False)
    assert findings.rules_for(run, None, exploratory=True).differences


def test_golden_numbers_hold_the_method_versions(tmp_path: Path) -> None:
    """When one of these moves, the version of its method in METHOD_VERSIONS has to move with it."""
    from analysis import estimate
    from harness.records import METHOD_VERSIONS

    data = [1.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 0.0]
    interval = estimate.gaffke(data)
    assert METHOD_VERSIONS["interval"] == "gaffke-midp/1"
    assert (round(interval.low, 6), round(interval.high, 6)) == pytest.approx((-0.291345, 0.673911), abs=1e-6)
    percentile = estimate.percentile_bootstrap(data)
    assert METHOD_VERSIONS["bootstrap"] == "exact-lattice/1"
    assert (percentile.low, percentile.high) == pytest.approx((-0.25, 0.75), abs=1e-9)
    bounded = estimate.preference([-1.0, 0.0, 1.0], [1.0, 0.0, 1.0])
    assert METHOD_VERSIONS["bounds"] == "worst-case-unresolved/1"
    assert (bounded.point_low, bounded.point_high) == pytest.approx((0.0, 2 / 3))
    ratio = estimate.cost_ratio([2.0, 4.0], [2.0, 4.0], [1.0, 1.0], [1.0, 1.0], name="golden")
    assert METHOD_VERSIONS["cost_ratio"] == "ratio-of-means-expanded-percentile/1"
    assert (ratio.point_low, ratio.low, ratio.high) == (3.0, 2.0, 4.0)
    assert METHOD_VERSIONS["pair"] == "both-orders/1"
    assert METHOD_VERSIONS["decision"] == "interval-beyond-margin/1"
    assert METHOD_VERSIONS["multiplicity"] == "max-t-midp/1"
    assert METHOD_VERSIONS["reader"] == "last-well-formed/1"


# --- planning --------------------------------------------------------------------------------------------------------


def test_a_hopeless_claim_is_refused_at_the_freeze_unless_accepted(tmp_path: Path) -> None:
    """Four tasks cannot support a difference whatever they show."""
    parts: dict[str, Any] = {"claims": [claim("best3", "single")]}
    accepted = study.load(write_study(tmp_path, **parts))
    assert planning.hopeless(accepted) == ["claim best3-solved: no result on 4 tasks could support it"]
    refused = study.load(write_study(tmp_path, **parts, analysis={"underpowered": "refused"}))
    with pytest.raises(FreezeError, match='underpowered = "accepted"'):
        planning.hopeless(refused)
    enough = study.load(write_study(tmp_path, **parts, pools=[{"family": "countdown", "sample": 12}]))
    assert planning.hopeless(enough) == []
    said = planning.sentences(enough)
    assert "12 tasks x 1 repeat detect" in said[0]
    assert "5-0" in said[1]
    costs = study.load(write_study(tmp_path, claims=[claim("best3", "single", "calls")]))
    assert "ratio of calls" in planning.sentences(costs)[0]
    assert claims.baselines(costs.study.claims[0]) == ("single",)
