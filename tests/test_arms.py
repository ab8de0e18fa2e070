"""One contract suite over all arms, run through the real door on scripted models."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import prompts
from harness.arms import KINDS, build, chain_contracts, dialectic_state
from harness.arms.dialectic_state import Move, Refusal, Rules, State, bounds, legal, step
from harness.asking import Arm
from harness.errors import AskError, Cause, ContractError, StudyError, Symptom
from harness.records import Answered, Call, Failed, Message, Question, Reading, Reply
from harness.stored import Run
from tests.build import ALL_ARMS, run_study, write_study

SENTINELS = {"arm": "zqxarm", "model": "zqxmodel"}


def one_arm(tmp_path: Path, arm: dict[str, Any], **more: Any) -> Run:
    """A run of one arm over a few tasks."""
    name = more.pop("arm_name", "only")
    return run_study(write_study(tmp_path, arms={name: arm}, **more), tmp_path / "results")


def scripted(skill: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"solver": {"name": "scripted/skill", "max_tokens": 400, "script": {"skill": skill, **more}}}


def calls_of(run: Run) -> dict[str, list[Call]]:
    found = defaultdict(list)
    for entry in run.log.entries:
        if isinstance(entry, Call):
            found[entry.owner].append(entry)
    return dict(found)


def test_the_suite_covers_every_kind() -> None:
    """A new arm kind joins the contract suite, or this fails."""
    assert {arm["kind"] for arm in ALL_ARMS.values()} == set(KINDS)


@pytest.mark.parametrize("kind", list(ALL_ARMS))
@pytest.mark.parametrize("skill", [0.0, 0.5, 1.0])
def test_calls_stay_within_the_declared_range(tmp_path: Path, kind: str, skill: float) -> None:
    """Retries apart, each trial makes as many calls as the arm says before the study."""
    run = one_arm(tmp_path, ALL_ARMS[kind], models=scripted(skill))
    summary = run.frozen.arms["only"]
    for calls in calls_of(run).values():
        assert summary.calls_low <= sum(call.bucket == "deliberation" for call in calls) <= summary.calls_high


@pytest.mark.parametrize("kind", list(ALL_ARMS))
def test_a_perfect_solver_solves_everything(tmp_path: Path, kind: str) -> None:
    """`example` replies keep every contract of the arm and carry the answer to its end."""
    run = one_arm(tmp_path, ALL_ARMS[kind], models=scripted(1.0))
    outcomes = [entry for entry in run.log.entries if isinstance(entry, Answered | Failed)]
    assert len(outcomes) == 4
    assert all(isinstance(entry, Answered) and entry.passed for entry in outcomes), outcomes


@pytest.mark.parametrize("kind", list(ALL_ARMS))
@pytest.mark.parametrize("family", ["extraction", "sorting", "advice"])
def test_every_arm_runs_on_every_format(tmp_path: Path, kind: str, family: str) -> None:
    """JSON, line and free text come through every arm."""
    arm = {**ALL_ARMS[kind], "pools": [family]}
    if kind == "repair" and family in ("advice", "sorting"):
        with pytest.raises(StudyError, match="visible check"):
            one_arm(tmp_path, arm, pools=[{"family": family, "sample": 2}])
        return
    run = one_arm(tmp_path, arm, models=scripted(1.0), pools=[{"family": family, "sample": 2}])
    outcomes = [entry for entry in run.log.entries if isinstance(entry, Answered | Failed)]
    wanted = None if family == "advice" else True
    assert [entry.passed for entry in outcomes if isinstance(entry, Answered)] == [wanted, wanted], outcomes


@pytest.mark.parametrize("kind", list(ALL_ARMS))
def test_equal_seeds_give_equal_results(tmp_path: Path, kind: str) -> None:
    """Two runs of one plan differ in clocks alone."""

    def outcomes(run: Run) -> list[tuple[str, object]]:
        found = [e for e in run.log.entries if isinstance(e, Answered | Failed)]
        return sorted((e.trial, e.model_dump(exclude={"seconds"})) for e in found)

    first = one_arm(tmp_path, ALL_ARMS[kind])
    second = run_study(tmp_path / "studies" / "small" / "study.toml", tmp_path / "results", again=True)
    assert first.folder != second.folder
    assert outcomes(first) == outcomes(second)


@pytest.mark.parametrize("kind", list(ALL_ARMS))
def test_no_message_or_schema_names_arm_model_or_reference(tmp_path: Path, kind: str) -> None:
    """What a role is sent holds nothing but the question, its own template, and the replies it may see."""
    arm = json.loads(json.dumps(ALL_ARMS[kind]).replace('"solver"}', f'"{SENTINELS["model"]}"}}'))
    arm = {k: [SENTINELS["model"]] if k == "seat_models" else v for k, v in arm.items()}
    if kind == "dialectic":
        arm["roles"] = {"proposer": SENTINELS["model"], "reviewer": SENTINELS["model"]}
    models = {SENTINELS["model"]: {"name": "scripted/skill", "script": {"skill": 0.0}}}
    tasks = tmp_path / "studies" / "small"
    tasks.mkdir(parents=True)
    line = {
        "id": "a",
        "family": "own",
        "split": "dev",
        "prompt": "Say a word.",
        "answer_format": "line",
        "reference": "zqxreference",
        "given": {"hint": "zqxgiven"},
        "ground_truth": "exact",
    }
    (tasks / "own.jsonl").write_text(json.dumps(line) + "\n")
    (tasks / "own.py").write_text(
        "from harness.records import Checked\nFORMAT = 'line'\n"
        "def check(task, reading): return Checked(passed=reading.value == task.reference, feedback='x')\n"
        "def visible(question, text): return Checked(passed=False, feedback='not yet')\n"
        "def right(task): return 'Answer: ' + task.reference\ndef wrong(task, rng): return 'Answer: no'\n"
    )
    arm["pools"] = ["own"]
    pools = [{"path": "own.jsonl", "check": "own.py"}]
    run = one_arm(tmp_path, arm, arm_name=SENTINELS["arm"], pools=pools, models=models)
    for calls in calls_of(run).values():
        for call in calls:
            sent = json.dumps([[m.model_dump() for m in call.messages], call.json_schema])
            assert "zqx" not in sent


@pytest.mark.parametrize("kind", list(ALL_ARMS))
def test_a_reply_reaches_only_the_prompts_whose_labels_lead_to_it(tmp_path: Path, kind: str) -> None:
    """Each prompt refills from its template and the replies that its receipt names: nothing else got in."""
    run = one_arm(tmp_path, ALL_ARMS[kind], models=scripted(0.3))
    for calls in calls_of(run).values():
        replies = {call.purpose: call.reply for call in calls}
        for call in calls:
            template = call.template or call.messages
            used = {label for message in template for label in prompts.slots(message.text)}
            assert used == set(call.saw)
            for label in used & replies.keys():
                assert prompts.quote(str(replies[label])) in call.messages[-1].text


@pytest.mark.parametrize("kind", list(ALL_ARMS))
def test_the_arms_own_cap_holds_in_the_middle_of_any_stage(tmp_path: Path, kind: str) -> None:
    """With max_calls below what it needs, a trial ends with the cause `cap` and never one call more."""
    high = 1 if kind == "single" else 2
    run = one_arm(tmp_path, {**ALL_ARMS[kind], "max_calls": high}, models=scripted(0.0))
    for calls in calls_of(run).values():
        assert len(calls) <= high
    causes = {entry.cause for entry in run.log.entries if isinstance(entry, Failed)}
    assert causes <= {Cause.cap}
    assert bool(causes) == (kind != "single")


@pytest.mark.parametrize("kind", list(ALL_ARMS))
@pytest.mark.parametrize("fault", ["malformed", "no_content", "cut", "refusal", "overflow", "wrong_model"])
def test_failures_end_in_a_closed_cause(tmp_path: Path, kind: str, fault: str) -> None:
    """Whatever the model does, every trial has one outcome, with a cause of the table and never a bug."""
    faults = {"share": 1.0, "kinds": [fault], "persistent": True}
    run = one_arm(tmp_path, ALL_ARMS[kind], models=scripted(0.5, faults=faults))
    outcomes = [entry for entry in run.log.entries if isinstance(entry, Answered | Failed)]
    assert len(outcomes) == len(run.plan.trials)
    causes = {entry.cause for entry in outcomes if isinstance(entry, Failed)}
    assert Cause.bug not in causes
    expected = {"malformed": "provider", "no_content": "unreadable", "refusal": "refused", "overflow": "overflow"}
    if fault in expected:
        assert causes <= {Cause(expected[fault]), Cause.provider}
        assert causes


# --- building from a study file --------------------------------------------------------------------------------------


def test_a_misspelt_kind_parameter_or_role_is_refused_with_the_nearest_word(tmp_path: Path) -> None:
    """The place in the file and the right word stand in the message."""
    with pytest.raises(StudyError, match=r"arms\.x\.kind.*did you mean 'dialectic'"):
        build({"kind": "dialektic"}, where="s.toml: arms.x", module_folder=tmp_path)
    with pytest.raises(StudyError, match=r"arms\.x\.max_round: unknown parameter.*did you mean 'max_rounds'"):
        build({"kind": "dialectic", "max_round": 2}, where="s.toml: arms.x", module_folder=tmp_path)
    with pytest.raises(StudyError, match=r"roles\.proposr.*did you mean 'proposer'"):
        build({"kind": "dialectic", "roles": {"proposr": "m"}}, where="s.toml: arms.x", module_folder=tmp_path)
    with pytest.raises(StudyError, match=r"arms\.x\.k: Input should be a valid integer"):
        build({"kind": "best_of_k", "k": "many"}, where="s.toml: arms.x", module_folder=tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "no file"),
        ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("x = 1", "holds 0 arms"),
        ("from harness.asking import Arm\nclass A(Arm):\n    kind: str = 'other'", "is of kind 'other'"),
    ],
)
def test_a_custom_arm_that_is_none_is_refused(tmp_path: Path, source: str | None, message: str) -> None:
    """Missing, broken, empty and misnamed modules each get their own message."""
    if source is not None:
        (tmp_path / "own.py").write_text(source)
    with pytest.raises(StudyError, match=message):
        build({"kind": "own", "module": "own.py"}, where="s.toml: arms.x", module_folder=tmp_path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 'text'", "an arm returns an Answer, not str"),
        ("return Answer(text='Answer: 1', detail={'x': float('nan')})", "cannot be written"),
        ("await ask('a', 'solver', user('{{nothing}}'))", "slot 'nothing'"),
        ("await ask('a', 'nobody', user('x'))", "no role 'nobody'"),
        ("await ask('a', 'solver', user('x')); await ask('a', 'solver', user('x'))", "used twice"),
        ("ask.check('c', 'x')", "visible check that it does not declare"),
        ("ask.verify('c', 'x')", "scoring check, which it does not declare"),
        ("ask.derive('d', 'x', ('nothing',))", "cannot come from 'nothing'"),
        ("ask.saw('nothing')", "no finished reply or input 'nothing'"),
        ("raise ExceptionGroup('two', [KeyError('k'), ValueError('v')])", "KeyError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_whatever_an_arm_does_is_its_trials_outcome_and_never_the_runs_end(
    tmp_path: Path, body: str, message: str
) -> None:
    """A bug of somebody's arm is named in the outcome; the run goes on to its seal."""
    path = write_study(tmp_path, arms={"own": {"kind": "own", "module": "own.py", "roles": {"solver": "solver"}}})
    (path.parent / "own.py").write_text(
        "from harness.asking import Arm, user\nfrom harness.records import Answer\n"
        f"class A(Arm):\n    kind: str = 'own'\n    async def __call__(self, question, ask):\n        {body}\n"
    )
    run = run_study(path, tmp_path / "results")
    failed = [entry for entry in run.log.entries if isinstance(entry, Failed)]
    assert {entry.cause for entry in failed} == {Cause.bug}
    assert len(failed) == len(run.plan.trials)
    assert message in failed[0].message
    assert run.log.sealed


def test_an_arm_that_does_not_answer_is_a_bug_of_its_trial(tmp_path: Path) -> None:
    """An arm without a coroutine, and one that crashes, fail their trials and not the run."""
    path = write_study(tmp_path, arms={"own": {"kind": "own", "module": "own.py", "roles": {"solver": "solver"}}})
    (path.parent / "own.py").write_text("from harness.asking import Arm\nclass A(Arm):\n    kind: str = 'own'")
    run = run_study(path, tmp_path / "results")
    failed = [entry for entry in run.log.entries if isinstance(entry, Failed)]
    assert {entry.cause for entry in failed} == {Cause.bug}
    assert "does not say how it answers" in failed[0].message


# --- single arms -----------------------------------------------------------------------------------------------------


class ListAsk:
    """A door that answers from a list of texts by purpose: a second, small implementation of the Ask protocol."""

    def __init__(self, replies: dict[str, str | Exception], seat: str = "same-model") -> None:
        self.replies, self._seat = replies, seat
        self.asked: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}

    async def __call__(self, purpose: str, role: str, messages: tuple[Message, ...], **options: Any) -> Reply:
        self.asked.append((purpose, str(options.get("bucket"))))
        await asyncio.sleep(0)
        reply = self.replies[purpose]
        if isinstance(reply, Exception):
            raise reply
        self.texts[purpose] = reply
        return Reply(text=reply, finish="stop")

    def read(self, text: str) -> Reading:
        from harness.reading import read

        return read(text, "line")

    def derive(self, label: str, text: str, sees: tuple[str, ...]) -> str:
        self.texts[label] = text
        return label

    def saw(self, label: str) -> str:
        return self.texts[label]

    def seat(self, role: str) -> str:
        return self._seat

    def rng(self, purpose: str) -> random.Random:
        return random.Random(purpose)


QUESTION = Question(id="f/t", prompt="What?", answer_format="line")


def answer(arm: Arm, replies: dict[str, str | Exception]) -> Any:
    ask = ListAsk(replies)
    return asyncio.run(arm(QUESTION, ask)), ask  # type: ignore[arg-type]


def made(kind: str, **parameters: Any) -> Arm:
    return build({"kind": kind, **parameters}, where="test", module_folder=Path())


def test_plurality_takes_the_most_frequent_read_answer_and_the_earliest_on_a_tie() -> None:
    """Form does not matter, only what the one reader reads; unreadable samples do not vote."""
    arm = made("best_of_k", k=4)
    texts = ["nothing", "Answer: 2", "so\n**Answer:** 3", "Answer: 3"]
    chosen, _ = answer(arm, {f"sample/{i}": text for i, text in enumerate(texts, 1)})
    assert chosen.text == "so\n**Answer:** 3"
    tie, _ = answer(arm, {f"sample/{i}": f"Answer: {i}" for i in range(1, 5)})
    assert tie.text == "Answer: 1"


def test_a_lost_sample_is_recorded_and_all_lost_fail_the_trial() -> None:
    """A failed call is a lost candidate; without any there is no answer."""
    lost = AskError(Symptom.server_error, "500")
    chosen, _ = answer(made("best_of_k", k=2), {"sample/1": lost, "sample/2": "Answer: 1"})
    assert chosen.text == "Answer: 1"
    assert len(chosen.detail["lost"]) == 1
    with pytest.raises(AskError):
        answer(made("best_of_k", k=2), {"sample/1": lost, "sample/2": lost})


def test_the_judge_selector_reads_the_valid_candidates_only() -> None:
    """The choice is one of the candidates that could be read."""
    replies: dict[str, str | Exception] = {
        "sample/1": "no",
        "sample/2": "Answer: 2",
        "sample/3": "Answer: 3",
        "select": '{"best": "3"}',
    }
    chosen, ask = answer(made("best_of_k", k=3, selector="judge"), replies)
    assert chosen.text == "Answer: 3"
    assert "candidate/1" not in ask.texts


def test_first_valid_takes_the_first_that_can_be_read() -> None:
    """Without looking at the others."""
    chosen, _ = answer(made("best_of_k", k=2, selector="first_valid"), {"sample/1": "no", "sample/2": "Answer: 2"})
    assert chosen.text == "Answer: 2"


def test_reflection_fails_below_its_minimum_of_findings_and_records_losses_above_it() -> None:
    """A failed gather is a recorded loss, never a silent None."""
    lost = AskError(Symptom.server_error, "500")
    replies: dict[str, str | Exception] = {
        "gather/1": lost,
        "gather/2": "a finding",
        "frame": "a tension",
        "critique/2": "fine",
        "synthesis": "Answer: 1",
    }
    arm = made("reflection", angles=["a", "b"])
    chosen, ask = answer(arm, replies)
    assert list(chosen.detail["lost"]) == ["gather/1"]
    assert [purpose for purpose, _ in ask.asked][-1] == "synthesis"
    with pytest.raises(Exception, match="1 findings of at least 2"):
        answer(made("reflection", angles=["a", "b"], min_findings=2), replies)


def test_oracle_and_verifier_are_labelled_everywhere() -> None:
    """An arm that sees the scoring check says so."""
    assert made("repair", oracle=True).labels({}) == ("uses the scoring check",)
    assert made("best_of_k", selector="verifier").labels({}) == ("uses the scoring check",)


def test_the_verifier_selector_takes_the_candidate_that_passes(tmp_path: Path) -> None:
    """With a verifier, best of 8 solves more than one sample of the same solver."""
    arms = {
        "one": ALL_ARMS["single"],
        "oracle": {"kind": "best_of_k", "k": 8, "selector": "verifier", "roles": {"solver": "solver"}},
    }
    path = write_study(tmp_path, arms=arms, models=scripted(0.4), pools=[{"family": "countdown", "sample": 12}])
    run = run_study(path, tmp_path / "results")
    solved = Counter(e.trial.split("/")[0] for e in run.log.entries if isinstance(e, Answered) and e.passed)
    assert solved["oracle"] == 12
    assert solved["one"] < 12


def test_an_inner_arm_runs_under_its_own_seats_and_purposes(tmp_path: Path) -> None:
    """best_of_k over a repair: its calls lie below sample/i/, with the inner arm's roles."""
    arms = {
        "repair": ALL_ARMS["repair"],
        "outer": {"kind": "best_of_k", "k": 2, "inner": "repair", "pools": ["countdown"]},
    }
    run = run_study(write_study(tmp_path, arms=arms, models=scripted(1.0)), tmp_path / "results")
    calls = [call for owner, calls in calls_of(run).items() if owner.startswith("outer/") for call in calls]
    assert {call.purpose for call in calls} == {"sample/1/attempt/1", "sample/2/attempt/1"}
    assert run.frozen.arms["outer"].calls_high == 6


# --- the dialectic's machine -----------------------------------------------------------------------------------------

THESIS = Move(by="proposer", kind="thesis", adds=("K-1",))
ANTITHESIS = Move(by="reviewer", kind="antithesis")
AGREE = Move(by="reviewer", kind="verdict", agrees=True, keeps=("K-1",))
REJECT = Move(by="reviewer", kind="verdict", agrees=False, keeps=("K-1",))
REPLY = Move(by="proposer", kind="reply", agrees=False, keeps=("K-1",))


def play(moves: list[Move], rules: Rules | None = None) -> State | Refusal:
    state: State | Refusal = State()
    for move in moves:
        assert isinstance(state, State)
        state = step(rules or Rules(), state, move)
    return state


@pytest.mark.parametrize(
    ("moves", "end"),
    [
        ([THESIS, ANTITHESIS, AGREE], "converged"),
        ([THESIS, ANTITHESIS, REJECT, REPLY, AGREE], "converged"),
        ([THESIS, ANTITHESIS, REJECT, REPLY, REJECT], "rejection_stands"),
        ([THESIS, Move(by="reviewer", kind="abstain")], "abstained"),
        ([THESIS, ANTITHESIS, Move(by="reviewer", kind="abstain")], "abstained"),
    ],
)
def test_episodes_end_as_the_protocol_says(moves: list[Move], end: str) -> None:
    """The shortest episode is thesis, antithesis, verdict; r verdicts are 1 + 2r moves."""
    state = play(moves)
    assert isinstance(state, State)
    assert state.end == end


def test_a_cap_of_one_round_ends_after_the_first_rejection() -> None:
    """Decided before another call is paid."""
    state = play([THESIS, ANTITHESIS, REJECT], Rules(max_rounds=1))
    assert isinstance(state, State)
    assert state.end == "max_rounds"


@pytest.mark.parametrize(
    ("moves", "rule"),
    [
        ([ANTITHESIS], "the_thesis_comes_first"),
        ([Move(by="proposer", kind="thesis")], "a_thesis_needs_a_commitment"),
        ([THESIS, REPLY], "the_reviewer_owes_the_antithesis"),
        ([THESIS, ANTITHESIS, REPLY], "the_reviewer_owes_the_first_verdict"),
        ([THESIS, ANTITHESIS, REJECT, REJECT], "the_proposer_owes_a_move"),
        ([THESIS, ANTITHESIS, REJECT, REPLY, REPLY], "the_reviewer_owes_a_verdict"),
        ([THESIS, ANTITHESIS, REJECT, Move(by="proposer", kind="reply", keeps=("K-9",))], "an_unknown_condition"),
        (
            [THESIS, ANTITHESIS, Move(by="reviewer", kind="verdict", agrees=True, keeps=("K-9",))],
            "an_unknown_condition",
        ),
        ([THESIS, ANTITHESIS, AGREE, AGREE], "a_terminal_state_takes_no_move"),
        ([THESIS, ANTITHESIS, Move(by="proposer", kind="abstain")], "only_the_reviewer_abstains"),
        ([THESIS, ANTITHESIS, REJECT, Move(by="proposer", kind="verdict", agrees=True)], "the_proposer_owes_a_reply"),
    ],
)
def test_illegal_moves_are_refused_by_name(moves: list[Move], rule: str) -> None:
    """A refused move is never stored."""
    assert play(moves) == Refusal(rule=rule)


def test_the_proposer_cannot_clear_a_standing_rejection() -> None:
    """Its agreement is stored once and does not converge; the rejection stands until the reviewer takes it back."""
    agreeing = REPLY.model_copy(update={"agrees": True})
    state = play([THESIS, ANTITHESIS, REJECT, agreeing])
    assert isinstance(state, State)
    assert state.end is None
    assert state.standing_rejection
    assert state.agreed_over_rejection


def test_another_set_of_conditions_is_accepted_or_contested_by_the_proposer() -> None:
    """The reviewer's agreement converges only on a set that both hold."""
    dropped = Move(by="reviewer", kind="verdict", agrees=True)
    offered = play([THESIS, ANTITHESIS, dropped])
    assert isinstance(offered, State)
    assert offered.end is None
    accepted = play([THESIS, ANTITHESIS, dropped, Move(by="proposer", kind="settle", agrees=True)])
    assert isinstance(accepted, State)
    assert (accepted.end, accepted.agreed, accepted.acceptance) == ("converged", (), "accepted")
    contested = play([THESIS, ANTITHESIS, dropped, Move(by="proposer", kind="settle", agrees=False)])
    assert isinstance(contested, State)
    assert (contested.end, contested.round, contested.standing_rejection) == (None, 2, False)
    assert play([THESIS, ANTITHESIS, dropped, REPLY]) == Refusal(rule="the_proposer_owes_accept_or_contest")


MOVES = st.builds(
    Move,
    by=st.sampled_from(["proposer", "reviewer"]),
    kind=st.sampled_from(["thesis", "antithesis", "verdict", "reply", "settle", "abstain"]),
    agrees=st.sampled_from([None, True, False]),
    keeps=st.sampled_from([(), ("K-1",), ("K-9",)]),
    adds=st.sampled_from([(), ("K-1",)]),
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.lists(MOVES, max_size=14), st.integers(1, 3))
def test_only_the_reviewer_ever_converges_and_rounds_never_pass_the_cap(moves: list[Move], most: int) -> None:
    """Over random moves: a convergence needs the reviewer's newest verdict true, refusals change nothing, caps hold."""
    rules, state = Rules(max_rounds=most), State()
    for move in moves:
        after = step(rules, state, move)
        if isinstance(after, Refusal):
            continue
        assert after.moves <= state.moves + 1
        if after.end == "converged":
            assert after.verdict is True
        if state.standing_rejection and move.by == "proposer":
            assert after.end != "converged"
        assert after.round <= most + 1
        state = after


@pytest.mark.parametrize("most", [1, 2, 5])
def test_the_declared_range_of_calls_is_the_machines_own(most: int) -> None:
    """Random legal episodes never leave the bounds, and some episode reaches each."""
    rules = Rules(max_rounds=most)
    low, high = bounds(rules)
    lengths = set()
    for seed in range(400):
        rng, state, length = random.Random(seed), State(), 0
        while state.end is None:
            after = step(rules, state, rng.choice(legal(rules, state)))
            assert isinstance(after, State)
            state, length = after, length + 1
        lengths.add(length)
    assert low == min(lengths) == 2
    assert max(lengths) <= high
    assert max(lengths) >= min(high, 6)


def dialectic_replies(**changes: str) -> dict[str, str | Exception]:
    arm = made("dialectic")
    base: dict[str, str | Exception] = {
        purpose: arm.example(purpose, "", "Answer: 1")
        for purpose in ("thesis", "antithesis", "verdict/1", "reply/1", "verdict/2")
    }
    return base | changes


def test_an_approval_that_appears_only_in_a_repair_is_discarded() -> None:
    """It forms no judgment; an objection may be restated."""
    yes = '{"reasoning": "r", "agrees": true, "keeps": ["K-1"]}'
    no = yes.replace("true", "false")
    approved, _ = answer(made("dialectic"), dialectic_replies(**{"verdict/1": "I agree", "verdict/1/repair": yes}))
    assert (approved.detail["outcome"], approved.detail["judgment_formed"]) == ("abstained", False)
    again, _ = answer(made("dialectic"), dialectic_replies(**{"verdict/1": "No!", "verdict/1/repair": no}))
    assert (again.detail["outcome"], again.detail["degraded"]) == ("converged", True)


@pytest.mark.parametrize("word", ['"maybe"', "1", '"true "', "null"])
def test_anything_but_true_or_false_forms_no_verdict(word: str) -> None:
    """A string, a number, or null is no verdict."""
    odd = '{"reasoning": "r", "agrees": ' + word + ', "keeps": ["K-1"]}'
    ended, _ = answer(made("dialectic"), dialectic_replies(**{"verdict/1": odd, "verdict/1/repair": odd}))
    assert (ended.detail["outcome"], ended.detail["judgment_formed"]) == ("abstained", False)


def test_a_dialectic_keeps_the_proposers_last_answer_whatever_the_outcome() -> None:
    """Intention to treat: a standing rejection is a stratum, not a failure."""
    no = '{"reasoning": "r", "agrees": false, "keeps": ["K-1"]}'
    revised = '{"reasoning": "r", "answer": "7", "agrees": false, "keeps": ["K-1"]}'
    ended, ask = answer(made("dialectic"), dialectic_replies(**{"verdict/1": no, "reply/1": revised, "verdict/2": no}))
    assert ended.detail["outcome"] == "rejection_stands"
    assert ended.text == "Answer: 7"
    assert len(ask.asked) == 5


def test_identical_objection_and_verdict_are_flagged() -> None:
    """A synthesis that is the antithesis byte for byte is visible to an analyst."""
    same = '{"reasoning": "r", "concerns": ["c"], "agrees": true, "keeps": ["K-1"]}'
    ended, _ = answer(made("dialectic"), dialectic_replies(**{"antithesis": same, "verdict/1": same}))
    assert ended.detail["antithesis_equals_verdict"] is True


def test_an_independent_reviewer_can_be_required() -> None:
    """A same-model seat is refused by name."""
    with pytest.raises(Exception, match="this one is same-model"):
        answer(made("dialectic", require_independent=True), dialectic_replies())


# --- the chain's contracts -------------------------------------------------------------------------------------------


def chain_reply(role: str) -> dict[str, Any]:
    return dict(json.loads(made("chain", seat_models=["m"]).example(role, role, "Answer: 1")))


BREACHES: list[tuple[str, dict[str, Any], str]] = [
    ("premise", {"suspicion": ""}, "no_suspicion_named"),
    ("premise", {"found": {"verdict": "MAYBE"}}, "one_verdict_of_two"),
    ("premise", {"found": {"verdict": "SUSPECT"}}, "suspect_needs_a_known_defect"),
    ("premise", {"found": {"verdict": "SUSPECT", "defect": "loaded"}}, "suspect_needs_reason_and_rewording"),
    ("generator", {"claims": []}, "claims_are_numbered"),
    (
        "generator",
        {"claims": {"C-2": {"text": "x", "load_bearing": True, "evidence": "given"}}},
        "claim_ids_run_from_c1",
    ),
    ("generator", {"claims": {"C-1": {"text": "", "load_bearing": True, "evidence": "given"}}}, "a_claim_without_text"),
    (
        "generator",
        {"claims": {"C-1": {"text": "x", "load_bearing": True, "evidence": "hearsay"}}},
        "an_unknown_evidence_class",
    ),
    (
        "generator",
        {"claims": {"C-1": {"text": "x", "load_bearing": "yes", "evidence": "given"}}},
        "load_bearing_is_true_or_false",
    ),
    (
        "generator",
        {"claims": {"C-1": {"text": "x", "load_bearing": False, "evidence": "given"}}},
        "no_load_bearing_claim",
    ),
    ("generator", {"weakest": " "}, "no_weakest_point"),
    ("generator", {"answer": ""}, "no_answer"),
    ("compressor", {"map": {}}, "a_claim_is_missing"),
    ("compressor", {"map": {"C-1": {"load_bearing": True}, "C-2": {"load_bearing": True}}}, "a_new_claim"),
    ("compressor", {"map": {"C-1": {"load_bearing": 1}}}, "load_bearing_is_true_or_false"),
    ("compressor", {"attack_vector": []}, "too_few_or_too_many_targets"),
    ("compressor", {"attack_vector": ["C-1", "C-1"]}, "a_target_twice"),
    ("compressor", {"attack_vector": ["C-7"]}, "a_target_that_does_not_exist"),
    ("attacker", {"outcomes": {}}, "a_target_without_an_outcome"),
    (
        "attacker",
        {"outcomes": {"C-1": {"outcome": "SURVIVES", "reason": "r"}, "C-2": {"outcome": "BROKEN", "reason": "r"}}},
        "an_outcome_without_a_target",
    ),
    ("attacker", {"outcomes": {"C-1": {"outcome": "FINE", "reason": "r"}}}, "an_unknown_outcome"),
    ("attacker", {"outcomes": {"C-1": {"outcome": "SURVIVES", "reason": ""}}}, "an_outcome_without_a_reason"),
    ("attacker", {"counts": {"broken": 1, "weakened": 0, "survives": 0}}, "counts_that_do_not_match"),
    ("attacker", {"off_vector": ""}, "no_off_vector_line"),
    ("synthesiser", {"ledger": {"C-1": {"status": "resolved", "grounds": "g"}}}, "a_ledger_where_none_is_due"),
    ("synthesiser", {"confidence": "total"}, "one_confidence_of_three"),
    ("synthesiser", {"would_change": ""}, "nothing_would_change_it"),
    ("synthesiser", {"answer": ""}, "no_answer"),
]


@pytest.mark.parametrize(("role", "change", "rule"), BREACHES, ids=[f"{role}-{rule}" for role, _, rule in BREACHES])
def test_a_reply_that_breaks_one_contract_is_named_by_it(role: str, change: dict[str, Any], rule: str) -> None:
    """One fresh conversation, then the trial ends with role and rule."""
    replies: dict[str, str | Exception] = {
        r: json.dumps(chain_reply(r)) for r in made("chain", seat_models=["m"]).ROLES
    }
    replies[role] = replies[f"{role}/again"] = json.dumps(chain_reply(role) | change)
    with pytest.raises(ContractError, match=rule) as caught:
        answer(made("chain", seat_models=["m"]), replies)
    assert caught.value.detail["role"] == role


def test_a_ledger_owes_every_hit_claim_and_the_off_vector_finding() -> None:
    """Broken or weakened claims and the finding outside the vector; nothing else."""
    attack = {"outcomes": {"C-1": {"outcome": "BROKEN"}, "C-2": {"outcome": "SURVIVES"}}, "off_vector": "a gap"}
    owed = chain_contracts.due(attack)  # type: ignore[arg-type]
    assert owed == ["C-1", "OFF-VECTOR"]
    whole: dict[str, Any] = {"answer": "a", "confidence": "low", "would_change": "x"}
    line = {"status": "resolved", "grounds": "g"}
    rule = chain_contracts.synthesiser_rule
    assert rule({**whole, "ledger": {"C-1": line}}, owed) == "the_ledger_leaves_something_out"
    assert rule({**whole, "ledger": dict.fromkeys([*owed, "C-2"], line)}, owed) == "the_ledger_names_what_is_not_due"
    assert rule({**whole, "ledger": {key: {"status": "resolved"} for key in owed}}, owed) == "resolved_without_grounds"
    assert rule({**whole, "ledger": {key: {"status": "open"} for key in owed}}, owed) == "resolved_or_unresolved"
    assert rule({**whole, "ledger": dict.fromkeys(owed, line)}, owed) is None


def test_a_broken_contract_gets_one_fresh_conversation_that_does_not_show_the_reply() -> None:
    """The rule is named, the reply is not quoted, and the trial goes on."""
    replies: dict[str, str | Exception] = {
        r: json.dumps(chain_reply(r)) for r in made("chain", seat_models=["m"]).ROLES
    }
    replies["generator/again"] = replies["generator"]
    replies["generator"] = "no JSON at all"
    chosen, ask = answer(made("chain", seat_models=["m"]), replies)
    assert chosen.detail["again"] == ["generator"]
    assert ("generator/again", "retry") in ask.asked


def test_a_suspect_premise_halts_where_the_study_says_so() -> None:
    """Halted is an outcome without an answer; forced goes on and keeps the verdict."""
    suspect = chain_reply("premise") | {
        "found": {"verdict": "SUSPECT", "defect": "loaded", "reason": "r", "rewording": "w"}
    }
    replies: dict[str, str | Exception] = {
        r: json.dumps(chain_reply(r)) for r in made("chain", seat_models=["m"]).ROLES
    }
    replies["premise"] = json.dumps(suspect)
    with pytest.raises(Exception, match="premise is suspect: loaded"):
        answer(made("chain", seat_models=["m"], on_suspect="halt"), replies)
    forced, _ = answer(made("chain", seat_models=["m"]), replies)
    assert forced.detail["premise"] == "SUSPECT"


def test_seats_swap_by_the_seed_and_pins_stay() -> None:
    """Generator and synthesiser sit together, premise check, compressor and attacker on the other model."""
    arm = made("chain", seat_models=["a", "b"], roles={"attacker": "c"}, allow_reduced_independence="x")
    seen = set()
    for task in range(30):
        seats = arm.seats(1, f"t{task}", 1)
        assert seats["attacker"] == "c"
        assert seats["generator"] == seats["synthesiser"] != seats["compressor"] == seats["premise"]
        seen.add(seats["generator"])
    assert seen == {"a", "b"}
    balanced = made("chain", seat_models=["a", "b"], seats_by="balanced", allow_reduced_independence="x")
    assert balanced.seats(1, "t", 1)["generator"] != balanced.seats(1, "t", 2)["generator"]


def test_independence_is_derived_and_refused_unless_accepted() -> None:
    """Three models, the generator's family apart from the critics'; unknown never counts."""
    pinned = made(
        "chain", roles={"premise": "b", "generator": "a", "compressor": "b", "attacker": "c", "synthesiser": "a"}
    )
    families = {"a": "qwen", "b": "gpt", "c": "claude"}
    assert pinned.refusal(families) is None
    assert pinned.labels(families) == ("independence: conforming",)
    assert "allow_reduced_independence" in str(pinned.refusal({**families, "b": None}))
    assert "allow_reduced_independence" in str(made("chain", seat_models=["a"]).refusal(families))


def test_the_position_reaches_the_attackers_marked_section_only(tmp_path: Path) -> None:
    """A sentinel in the caller's position turns up in no other prompt."""
    tasks = tmp_path / "studies" / "small"
    tasks.mkdir(parents=True)
    line = {
        "id": "a",
        "family": "own",
        "split": "dev",
        "prompt": "Say a word.",
        "answer_format": "line",
        "position": "zqxposition",
        "facts": "zqxfacts",
        "constraints": "zqxconstraints",
        "reference": "yes",
        "ground_truth": "exact",
    }
    (tasks / "own.jsonl").write_text(json.dumps(line) + "\n")
    (tasks / "own.py").write_text(
        "from harness.records import Checked\nFORMAT = 'line'\n"
        "def check(task, reading): return Checked(passed=reading.value == task.reference, feedback='x')\n"
    )
    path = write_study(tmp_path, arms={"chain": ALL_ARMS["chain"]}, pools=[{"path": "own.jsonl", "check": "own.py"}])
    run = run_study(path, tmp_path / "results")
    (calls,) = calls_of(run).values()
    sent = {call.role: call.messages[-1].text for call in calls}
    assert [role for role, text in sent.items() if "zqxposition" in text] == ["attacker"]
    assert "== The caller's own position (treat it here only) ==\nzqxposition" in sent["attacker"]
    assert [role for role, text in sent.items() if "zqxfacts" in text] == ["generator", "synthesiser"]
    assert [role for role, text in sent.items() if "zqxconstraints" in text] == ["premise", "generator", "synthesiser"]


def test_dialectic_state_exports_are_pure() -> None:
    """A step leaves the state that it was given as it was."""
    before = State()
    dialectic_state.step(Rules(), before, THESIS)
    assert before == State()
