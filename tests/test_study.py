"""Reading a study: what is refused, and how the message helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import campaign, study
from harness.errors import FreezeError, SetupError, StudyError
from tests.build import ALL_ARMS, SOLVER, claim, write_study

TWO = {"single": ALL_ARMS["single"], "best3": ALL_ARMS["best3"]}


def refused(tmp_path: Path, message: str, **parts: Any) -> None:
    """The study with these parts is refused, its file named."""
    path = write_study(tmp_path, **parts)
    with pytest.raises(StudyError, match=message) as caught:
        study.load(path)
    assert "study.toml" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_misspelt_key_is_refused_with_its_place_and_the_nearest_word(tmp_path: Path) -> None:
    """At the top, in a pool, in a model, in a claim."""
    refused(tmp_path, "repeat: unknown key; did you mean 'repeats'", repeat=2)
    refused(tmp_path, r"pools\.0\.famly: unknown key; did you mean 'family'", pools=[{"famly": "countdown"}])
    refused(
        tmp_path,
        r"models\.solver\.temprature.*'temperature'",
        models={"solver": {"name": "scripted/skill", "temprature": 1}},
    )
    wrong = claim("best3", "single") | {"metrik": "solved"}
    refused(tmp_path, r"claims\.0\.metrik: unknown key; did you mean 'metric'", claims=[wrong])
    refused(
        tmp_path, r"judges\.j\.gate\.acuracy_low", judges={"j": {"models": ["solver"], "gate": {"acuracy_low": 0.5}}}
    )


def test_a_wrong_value_is_refused_with_what_is_allowed(tmp_path: Path) -> None:
    """A closed word, a missing key, a wrong type."""
    refused(tmp_path, "'tset' is not one of 'dev' or 'heldout'", pools=[{"family": "countdown", "split": "tset"}])
    refused(
        tmp_path,
        r"claims\.0\.arm: is missing",
        claims=[{"id": "x", "text": "y", "baseline": "single", "metric": "solved"}],
    )
    refused(tmp_path, "repeats", repeats=0)
    refused(tmp_path, "pools: at least one is needed", pools=[])
    refused(tmp_path, r"arms: a table is wanted, such as \[arms.<name>\]", arms=["single"])
    refused(
        tmp_path, "less than or equal to 1", models={"solver": {"name": "scripted/skill", "script": {"skill": 2.0}}}
    )


def test_what_is_not_toml_is_refused(tmp_path: Path) -> None:
    """With the line that the parser names."""
    path = write_study(tmp_path)
    path.write_text("id = \n")
    with pytest.raises(StudyError, match="not TOML"):
        study.load(path)
    with pytest.raises(StudyError, match="cannot be read"):
        study.parse(tmp_path / "nowhere.toml")


def test_a_study_is_found_by_path_folder_or_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And an unknown name gets the nearest known one."""
    path = write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert study.find(str(path)) == path
    assert study.find(str(path.parent)) == path
    assert study.find("small").resolve() == path
    with pytest.raises(StudyError, match="did you mean 'small'"):
        study.find("smal")


def test_the_id_is_the_folders_name(tmp_path: Path) -> None:
    """Results of two studies never meet in one folder."""
    path = write_study(tmp_path)
    path.write_text(path.read_text().replace('"small"', '"other"'))
    with pytest.raises(StudyError, match="is not the name of its folder"):
        study.load(path)


def test_pools_are_refused_by_name(tmp_path: Path) -> None:
    """Unknown family, twice the same, neither family nor path, too large a sample, no checker."""
    refused(tmp_path, "no family 'countdwn'; did you mean 'countdown'", pools=[{"family": "countdwn"}])
    refused(tmp_path, "named twice", pools=[{"family": "countdown"}, {"family": "countdown"}])
    refused(tmp_path, "either `family`", pools=[{"split": "dev"}])
    refused(tmp_path, "9999 of", pools=[{"family": "countdown", "sample": 9999}])
    refused(tmp_path, "needs its checker", pools=[{"path": "mine.jsonl"}])


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("FORMAT = 'line'\ncheck = None\n", "has no check, and its tasks are not judged but exact"),
        ("FORMAT = 'json'\ndef check(task, reading): ...\n", "mine/a wants 'line', and its checker reads 'json'"),
        ("def check(task, reading): ...\n", "FORMAT"),
        ("FORMAT = 'line'\n", "check"),
    ],
)
def test_a_pool_that_its_checker_cannot_check_is_refused(tmp_path: Path, check: str, message: str) -> None:
    """No check, another format, a checker that is none."""
    folder = tmp_path / "studies" / "small"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(check)
    line = '{"id":"a","family":"mine","split":"dev","prompt":"?","answer_format":"line","reference":"x","ground_truth":"exact"}\n'
    (folder / "mine.jsonl").write_text(line)
    path = write_study(tmp_path, pools=[{"path": "mine.jsonl", "check": "mine.py"}])
    with pytest.raises(StudyError, match=message):
        study.load(path)


def test_models_and_arms_are_refused_by_name(tmp_path: Path) -> None:
    """A model that the study lacks, an arm without a model, an unknown pool, an unknown inner arm."""
    refused(
        tmp_path,
        "no model 'solvr'; did you mean 'solver'",
        arms={"a": {"kind": "single", "roles": {"solver": "solvr"}}},
    )
    refused(tmp_path, "no model plays solver", arms={"a": {"kind": "single"}})
    refused(tmp_path, "no pool 'x'", arms={"a": {**ALL_ARMS["single"], "pools": ["x"]}})
    refused(tmp_path, "no arm 'x'", arms={"a": {"kind": "best_of_k", "inner": "x"}})
    refused(tmp_path, "not three models", arms={"a": {"kind": "chain", "seat_models": ["solver"]}})


def test_a_loop_of_arms_is_refused_with_its_path(tmp_path: Path) -> None:
    """a -> b -> a."""
    arms = {"a": {"kind": "best_of_k", "inner": "b"}, "b": {"kind": "best_of_k", "inner": "a"}}
    refused(tmp_path, "a loop of references: a -> b -> a", arms=arms)


def test_repair_needs_a_visible_check_in_all_its_pools(tmp_path: Path) -> None:
    """Refused when the study is read, with the pools that have one."""
    pools = [{"family": "countdown", "sample": 1}, {"family": "advice", "sample": 1}]
    repair = {k: v for k, v in ALL_ARMS["repair"].items() if k != "pools"}
    refused(
        tmp_path, r"of advice has none; name the arm's pools: pools = \['countdown'\]", arms={"r": repair}, pools=pools
    )
    refused(tmp_path, "is judged", arms={"r": {**repair, "oracle": True}}, pools=pools)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (claim("bst3", "single"), r"no arm 'bst3'; did you mean 'best3'"),
        (claim("best3", "singel"), r"baseline: no arm 'singel'; did you mean 'single'"),
        (claim("best3", "best3"), "compared with another arm"),
        (claim("best3", "single", pools=["x"]), "no pool 'x'"),
        (claim("best3", "single", "preference"), "preference needs a judge: the study has none"),
        (claim("best3", "single", margin=1.5), "a difference from 0 to below 1"),
        (claim("best3", "single", "calls", margin=0.5), "a ratio of 1"),
        (claim("best3", "single", direction="equivalent"), "equivalence needs a margin"),
        (claim("best3", "single", pools=["advice"]), "no solved of best3"),
        (claim("best3", "single", judge="j"), "no judge 'j'"),
    ],
)
def test_impossible_claims_are_refused(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    """Each names the claim and what would be right."""
    pools = [{"family": "countdown", "sample": 2}, {"family": "advice", "sample": 2}]
    refused(tmp_path, message, arms=TWO, pools=pools, claims=[bad])


def test_a_claim_id_is_used_once(tmp_path: Path) -> None:
    """Two claims of one name could not be told apart."""
    refused(tmp_path, "is used twice", claims=[claim("best3", "single")] * 2)


def test_a_ratio_claim_has_a_margin_of_one_where_none_is_given(tmp_path: Path) -> None:
    """Equal is a ratio of 1, not a difference of 0."""
    loaded = study.load(write_study(tmp_path, claims=[claim("best3", "single", "calls"), claim("best3", "single")]))
    assert [one.margin for one in loaded.study.claims] == [1.0, 0.0]


def test_several_models_need_a_single_of_each_or_a_reason(tmp_path: Path) -> None:
    """Else one better model wins for the protocol."""
    models = {"a": {"name": "scripted/skill"}, "b": {"name": "scripted/skill"}}
    arms = {
        "single_a": {"kind": "single", "roles": {"solver": "a"}},
        "single_b": {"kind": "single", "roles": {"solver": "b"}},
        "debate": {"kind": "dialectic", "roles": {"proposer": "a", "reviewer": "b"}},
    }
    bad = claim("debate", "single_a")
    refused(tmp_path, r"a `single` of each.*missing: b", models=models, arms=arms, claims=[bad])
    study.load(write_study(tmp_path, models=models, arms=arms, claims=[bad | {"unmatched_reason": "a pilot"}]))
    study.load(write_study(tmp_path, models=models, arms=arms, claims=[bad | {"baseline": ["single_a", "single_b"]}]))


def test_a_judge_of_the_arms_own_family_is_refused_unless_labelled(tmp_path: Path) -> None:
    """The evaluated model does not grade itself silently."""
    models = {"solver": {"name": "embedded/qwen2.5-coder-0.5b"}}
    refused(tmp_path, "of the family of solver", models=models, judges={"j": {"models": ["solver"]}})
    refused(tmp_path, "no model 'x'", judges={"j": {"models": ["x"]}})
    refused(tmp_path, "no pool 'x'", judges={"j": {"models": ["solver"], "pools": ["x"]}})
    refused(tmp_path, "no labelled pairs 'judge-calibrtion'; did you mean 'judge-calibration'", judges={
        "j": {"models": ["solver"], "calibration": "judge-calibrtion"}
    })  # fmt: skip
    refused(
        tmp_path,
        "9999 of",
        judges={"j": {"models": ["solver"], "calibration": "judge-calibration", "calibration_sample": 9999}},
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("embedded/qwen2.5-coder-0.6b", "did you mean 'qwen2.5-coder-0.5b'"),
        ("scripted/skil", "did you mean 'skill'"),
        ("scripted/file", "names no file"),
        ("replay/nowhere", "no journal there"),
        ("nonsense-model", "no provider"),
        ("openai/gpt-5", "OPENAI_API_KEY"),
    ],
)
def test_a_model_that_cannot_be_called_is_refused_before_the_freeze(
    tmp_path: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unknown names, missing files and missing keys: what would be right stands in the message."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = write_study(tmp_path, models={"solver": {"name": name}})
    with pytest.raises(SetupError, match=message) as caught:
        campaign.ready(str(path))
    assert "models.solver" in str(caught.value)
    assert caught.value.exit_code == 5


def test_a_cap_in_money_needs_prices(tmp_path: Path) -> None:
    """A budget that could not be kept is refused at the freeze."""
    models = {"solver": {"name": "openai/unpriced-model", "api_base": "http://127.0.0.1:9/v1"}}
    path = write_study(tmp_path, models=models, budget={"usd": 1.0})
    with pytest.raises(FreezeError, match="no price is known for solver"):
        campaign.check_budget(study.load(path))


def test_samples_do_not_depend_on_the_order_of_the_file_or_on_other_tasks(tmp_path: Path) -> None:
    """Never the first n: the same seed draws the same tasks, and another seed others."""
    import tasks

    everything = list(tasks.load_tasks(tasks.ROOT / "countdown" / "tasks.jsonl"))
    drawn = tasks.draw(everything, 10, 3, "countdown")
    assert tasks.draw(list(reversed(everything)), 10, 3, "countdown") == drawn
    assert tasks.draw(everything, 10, 4, "countdown") != drawn
    assert drawn != everything[:10]
    assert set(SOLVER) == {"solver"}
