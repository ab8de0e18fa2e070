"""The dialectic as a state machine: `step(rules, state, move)` is pure and replayable; the arm only feeds it.

Only the reviewer can converge. A rejection stands until the reviewer itself takes it back: it is keyed on the role.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from harness.records import Record

End = Literal["converged", "rejection_stands", "max_rounds", "abstained"]


class Rules(Record):
    """What bounds an episode."""

    max_rounds: int = 5
    replies: int = 1
    """Answers of the proposer to one rejection before it stands."""


class Move(Record):
    """One message, reduced to what the machine needs."""

    by: Literal["proposer", "reviewer"]
    kind: Literal["thesis", "antithesis", "verdict", "reply", "settle", "abstain"]
    agrees: bool | None = None
    """A verdict's, a reply's, or a settlement's (true: accepts the reviewer's set)."""
    keeps: tuple[str, ...] = ()
    """Ids of the open conditions that it keeps."""
    adds: tuple[str, ...] = ()
    """Ids of the conditions that it adds."""


class State(Record):
    """Where an episode stands. `end` set: no further move."""

    phase: Literal["thesis", "antithesis", "synthesis", "done"] = "thesis"
    owes: Literal["proposer", "reviewer"] = "proposer"
    moves: int = 0
    round: int = 0
    verdict: bool | None = None
    """The newest verdict of the reviewer; None: it owes the first."""
    answers: int = 0
    """Replies to the standing rejection."""
    agreed_over_rejection: bool = False
    proposed: tuple[str, ...] = ()
    """The proposer's last set of conditions, sorted."""
    offered: tuple[str, ...] | None = None
    """The set on which the reviewer agreed and the proposer owes a word."""
    agreed: tuple[str, ...] | None = None
    acceptance: Literal["accepted", "contested", "no_reply"] = "no_reply"
    end: End | None = None

    @property
    def standing_rejection(self) -> bool:
        """Is the reviewer's newest verdict a rejection?"""
        return self.verdict is False


class Refusal(Record):
    """An illegal move: never stored."""

    rule: str


def step(rules: Rules, state: State, move: Move) -> State | Refusal:
    """The state after a move, or the rule that refuses it."""
    if state.end is not None:
        return Refusal(rule="a_terminal_state_takes_no_move")
    if state.phase == "thesis":
        return _thesis(state, move)
    if state.phase == "antithesis":
        return _antithesis(state, move)
    if state.round > rules.max_rounds:
        return _ended(state, "max_rounds")
    if move.kind == "abstain":
        return (
            _ended(_next(state), "abstained") if move.by == "reviewer" else Refusal(rule="only_the_reviewer_abstains")
        )
    if move.by == "proposer":
        return _proposer(rules, state, move)
    return _verdict(rules, state, move)


def _next(state: State, **changes: object) -> State:
    return state.model_copy(update={"moves": state.moves + 1, **changes})


def _ended(state: State, end: End, **changes: object) -> State:
    return state.model_copy(update={"phase": "done", "end": end, **changes})


def _set(*ids: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({one for group in ids for one in group}))


def _thesis(state: State, move: Move) -> State | Refusal:
    if move.by != "proposer" or move.kind != "thesis":
        return Refusal(rule="the_thesis_comes_first")
    if not move.adds:
        return Refusal(rule="a_thesis_needs_a_commitment")
    return _next(state, phase="antithesis", owes="reviewer", proposed=_set(move.adds))


def _antithesis(state: State, move: Move) -> State | Refusal:
    if move.by != "reviewer" or move.kind not in ("antithesis", "abstain"):
        return Refusal(rule="the_reviewer_owes_the_antithesis")
    if move.kind == "abstain":
        return _ended(_next(state), "abstained")
    return _next(state, phase="synthesis", owes="reviewer", round=1)


def _proposer(rules: Rules, state: State, move: Move) -> State | Refusal:
    if state.verdict is None:
        return Refusal(rule="the_reviewer_owes_the_first_verdict")
    if state.offered is not None:
        return _settle(rules, state, move)
    if move.kind != "reply":
        return Refusal(rule="the_proposer_owes_a_reply")
    if state.owes != "proposer":
        return Refusal(rule="the_reviewer_owes_a_verdict")
    if not set(move.keeps) <= set(state.proposed):
        return Refusal(rule="an_unknown_condition")
    agreeing = bool(move.agrees) and state.standing_rejection
    if agreeing and state.agreed_over_rejection:
        return Refusal(rule="agreeing_over_a_rejection_twice")
    return _next(
        state,
        owes="reviewer",
        answers=state.answers + 1,
        agreed_over_rejection=agreeing or state.agreed_over_rejection,
        proposed=_set(move.keeps, move.adds),
    )


def _settle(rules: Rules, state: State, move: Move) -> State | Refusal:
    if move.kind != "settle" or move.agrees is None:
        return Refusal(rule="the_proposer_owes_accept_or_contest")
    assert state.offered is not None
    if move.agrees:
        return _ended(_next(state, acceptance="accepted"), "converged", agreed=state.offered)
    after = _next(state, offered=None, owes="reviewer", round=state.round + 1, acceptance="contested")
    return _ended(after, "max_rounds") if after.round > rules.max_rounds else after


def _verdict(rules: Rules, state: State, move: Move) -> State | Refusal:
    if move.kind != "verdict" or move.agrees is None or state.owes != "reviewer" or state.offered is not None:
        return Refusal(
            rule="the_proposer_owes_a_move"
            if state.owes == "proposer" or state.offered is not None
            else "a_verdict_is_due"
        )
    if not set(move.keeps) <= set(state.proposed):
        return Refusal(rule="an_unknown_condition")
    kept = _set(move.keeps, move.adds)
    if move.agrees:
        agreed = _next(state, verdict=True, answers=0, agreed_over_rejection=False)
        if kept == state.proposed:
            return _ended(agreed, "converged", agreed=kept)
        return agreed.model_copy(update={"owes": "proposer", "offered": kept})
    # A reply that answers a rejection leaves it standing; a rejection after an agreement starts a new count.
    answers = state.answers if state.standing_rejection else 0
    after = _next(
        state, verdict=False, owes="proposer", round=state.round + 1, answers=answers, agreed_over_rejection=False
    )
    if answers >= rules.replies:
        return _ended(after, "rejection_stands")
    return _ended(after, "max_rounds") if after.round > rules.max_rounds else after


# --- the machine's own bounds ----------------------------------------------------------------------------------------


def legal(rules: Rules, state: State) -> list[Move]:
    """A move of every kind that the machine would take here; what the forecast and the tests walk along."""
    mine = state.proposed
    candidates = [
        Move(by="proposer", kind="thesis", adds=("K-1",)),
        Move(by="reviewer", kind="antithesis"),
        Move(by="reviewer", kind="abstain"),
        Move(by="reviewer", kind="verdict", agrees=True, keeps=mine),
        Move(by="reviewer", kind="verdict", agrees=True, keeps=()),
        Move(by="reviewer", kind="verdict", agrees=False, keeps=mine),
        Move(by="proposer", kind="reply", agrees=False, keeps=mine),
        Move(by="proposer", kind="settle", agrees=True),
        Move(by="proposer", kind="settle", agrees=False),
    ]
    return [move for move in candidates if not isinstance(step(rules, state, move), Refusal)]


@cache
def bounds(rules: Rules) -> tuple[int, int]:
    """Fewest and most moves of an episode, by walking through the machine."""

    @cache
    def walk(state: State) -> tuple[int, int]:
        if state.end is not None:
            return 0, 0
        ends = []
        for move in legal(rules, state):
            after = step(rules, state, move)
            assert isinstance(after, State)
            low, high = walk(after.model_copy(update={"moves": 0}))
            ends.append((low + 1, high + 1))
        return min(low for low, _ in ends), max(high for _, high in ends)

    return walk(State())
