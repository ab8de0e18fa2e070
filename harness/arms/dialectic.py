"""`dialectic`: thesis, antithesis, then verdicts and replies under the state machine of `dialectic_state`.

The arm only feeds the machine: it asks whose move is owed, turns the reply into a move, and steps. It returns the proposer's
last answer whatever the outcome (intention to treat); the outcome is a stratum, never a filter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from harness import prompts
from harness.arms.dialectic_state import Move, Refusal, Rules, State, bounds, step
from harness.asking import (
    Arm,
    Arms,
    Told,
    answer_field,
    answer_of,
    ask_schema,
    broken_rule,
    closed,
    example_answer,
    object_of,
    said,
    size,
    task_labels,
    task_text,
    text_field,
    texts,
    user,
)
from harness.canonical import canonical
from harness.errors import Cause, ContractError, TrialError
from harness.records import Answer, Ask, Question, Step

REASONING = text_field(240)
FLAG: JsonValue = {"type": "boolean"}


class Dialectic(Arm):
    """A proposer and a reviewer under rules that are enforced by machine."""

    PURPOSE: ClassVar[str] = "a proposer defends an answer before a reviewer who alone can converge"
    ROLES: ClassVar[tuple[str, ...]] = ("proposer", "reviewer")
    FALLBACK: ClassVar[str] = "proposer"

    kind: Literal["dialectic"] = "dialectic"
    max_rounds: int = Field(5, ge=1, le=20)
    replies: int = Field(1, ge=1, le=20)
    """Answers of the proposer to one rejection before it stands."""
    require_independent: bool = False
    """Refuse a reviewer that is not known to be of another family."""

    async def __call__(self, question: Question, ask: Ask) -> Answer:
        seat = ask.seat("reviewer")
        if self.require_independent and seat != "independent":
            raise TrialError(Cause.contract, f"an independent reviewer is required, and this one is {seat}")
        episode = _Episode(self, question, ask)
        while episode.state.end is None:
            await episode.turn()
        return episode.answer(seat)

    def rules(self) -> Rules:
        """The machine's parameters."""
        return Rules(max_rounds=self.max_rounds, replies=self.replies)

    def steps(self, arms: Arms) -> tuple[Step, ...]:
        low, high = bounds(self.rules())
        return (
            Step(role="proposer", low=1, high=1, prompt_chars=size("dialectic_thesis")),
            Step(role="reviewer", low=low - 1, high=2, prompt_chars=size("dialectic_antithesis"), sees=1),
            Step(role="reviewer", low=0, high=(high - 3 + 1) // 2, prompt_chars=size("dialectic_verdict"), sees=4),
            Step(role="proposer", low=0, high=(high - 3) // 2, prompt_chars=size("dialectic_reply"), sees=3),
        )

    def calls(self, arms: Arms) -> tuple[int, int]:
        low, high = bounds(self.rules())
        return (low, high) if self.max_calls is None else (min(low, self.max_calls), min(high, self.max_calls))

    def labels(self, families: Mapping[str, str | None]) -> tuple[str, ...]:
        models = self.models_of_roles()
        if models.get("proposer") == models.get("reviewer"):
            return ("same-model reviewer",)
        first, second = families.get(models.get("proposer", "")), families.get(models.get("reviewer", ""))
        if first is None or second is None:
            return ("reviewer of unverified family",)
        return ("same-family reviewer",) if first == second else ()

    def prompt_names(self) -> tuple[str, ...]:
        names = ("thesis", "antithesis", "verdict", "reply", "settle", "restate")
        return (*(f"dialectic_{name}" for name in names), "repair_turn")

    def sources(self) -> tuple[str, ...]:
        return ("dialectic_state.py",)

    def example(self, purpose: str, role: str, answer: str) -> str:
        stage = purpose.split("/")[0]
        value = example_answer(answer)
        replies: dict[str, dict[str, JsonValue]] = {
            "thesis": {
                "reasoning": "scripted",
                "answer": value,
                "crux": "the rule",
                "commitments": ["it can be checked"],
            },
            "antithesis": {"reasoning": "scripted", "concerns": ["a slip"]},
            "verdict": {"reasoning": "scripted", "agrees": True, "keeps": ["K-1"]},
            "reply": {"reasoning": "scripted", "answer": value, "agrees": False, "keeps": ["K-1"]},
            "settle": {"accepts": True, "reasoning": "scripted"},
        }
        return canonical(replies[stage]).decode("ascii")


class _Episode:
    """One trial of a dialectic: the machine's state and the texts behind it."""

    def __init__(self, arm: Dialectic, question: Question, ask: Ask) -> None:
        self.arm, self.question, self.ask = arm, question, ask
        self.state = State()
        self.conditions: dict[str, tuple[str, str]] = {}
        """Id -> (text's author, text)."""
        self.history: list[tuple[str, str]] = []
        """(what it is, the label of its reply)."""
        self.text = ""
        self.formed, self.degraded, self.refused = True, False, 0
        self.verdicts = self.replies = self.settlements = 0
        self.transcript: list[JsonValue] = []

    async def turn(self) -> None:
        """Ask for the move that is owed and make it."""
        if self.state.phase == "thesis":
            await self._thesis()
        elif self.state.phase == "antithesis":
            await self._antithesis()
        elif self.state.offered is not None:
            await self._settle()
        elif self.state.owes == "reviewer":
            await self._verdict()
        else:
            await self._reply()

    def _make(self, move: Move, label: str) -> None:
        after = step(self.arm.rules(), self.state, move)
        if isinstance(after, Refusal):
            raise ContractError(after.rule, f"the {move.by}'s move {label} is refused", {"move": move.model_dump()})
        self.state = after
        self.transcript.append({"purpose": label, "by": move.by, "kind": move.kind, "agrees": move.agrees})

    async def _thesis(self) -> None:
        schema = closed(
            {
                "reasoning": REASONING,
                "answer": answer_field(self.question.answer_format),
                "crux": text_field(120),
                "commitments": {"type": "array", "items": text_field(100), "minItems": 1, "maxItems": 2},
            }
        )
        sees = (*task_labels(self.question), "format")
        told = await self._told("thesis", "proposer", {}, schema, sees, _thesis_rule)
        ids = []
        for text in texts(told.data, "commitments"):
            ids.append(f"K-{len(self.conditions) + 1}")
            self.conditions[ids[-1]] = ("proposer", text)
        self.text = answer_of(self.ask, self.question.answer_format, told.data)
        self.history.append(("Answer", told.label))
        self._make(Move(by="proposer", kind="thesis", adds=tuple(ids)), told.label)

    async def _antithesis(self) -> None:
        concerns: JsonValue = {"type": "array", "items": text_field(140), "minItems": 1, "maxItems": 2}
        schema = closed({"reasoning": REASONING, "concerns": concerns, "abstains": FLAG}, ["reasoning", "concerns"])
        label = self.history[0][1]
        text = prompts.load("dialectic_antithesis").replace("{{thesis}}", "{{" + label + "}}")
        sees = (*task_labels(self.question), label)
        prompt = user(prompts.render(text, task=task_text(self.question)))
        told = await ask_schema(self.ask, "antithesis", "reviewer", prompt, schema, _antithesis_rule, sees=sees)
        self.history.append(("Objection", told.label))
        if told.data.get("abstains") is True:
            self.formed = False
            self._make(Move(by="reviewer", kind="abstain"), told.label)
        else:
            self._make(Move(by="reviewer", kind="antithesis"), told.label)

    async def _verdict(self) -> None:
        """A verdict: true or false and nothing else. One repair may restate an objection; it can never approve."""
        self.verdicts += 1
        purpose = f"verdict/{self.verdicts}"
        schema = closed({"reasoning": REASONING, "agrees": FLAG, "keeps": self._ids()})
        sees = (*task_labels(self.question), *self._labels())
        prompt = user(self._rendered("dialectic_verdict", conditions=self._open(self.state.proposed)))
        reply = await self.ask(purpose, "reviewer", prompt, schema=schema, sees=sees)
        label, repaired = purpose, False
        if broken_rule(reply, self._verdict_rule) is not None:
            label, repaired = f"{purpose}/repair", True
            text = prompts.render(prompts.load("dialectic_restate"), label="{{" + purpose + "}}")
            reply = await self.ask(label, "reviewer", user(text), schema=schema, sees=(purpose,), bucket="retry")
        data = object_of(reply) or {}
        formed = broken_rule(reply, self._verdict_rule) is None and not (repaired and data.get("agrees") is True)
        self.formed, self.degraded = formed, self.degraded or repaired
        self.history.append(("Verdict", label))
        if not formed:
            self._make(Move(by="reviewer", kind="abstain"), label)
            return
        move = Move(by="reviewer", kind="verdict", agrees=bool(data["agrees"]), keeps=tuple(texts(data, "keeps")))
        self._make(move, label)

    async def _reply(self) -> None:
        self.replies += 1
        schema = closed(
            {
                "reasoning": REASONING,
                "answer": answer_field(self.question.answer_format),
                "agrees": FLAG,
                "keeps": self._ids(),
            }
        )
        sees = (*task_labels(self.question), "format", *self._labels())
        told = await ask_schema(
            self.ask,
            f"reply/{self.replies}",
            "proposer",
            user(self._rendered("dialectic_reply", conditions=self._open(self.state.proposed))),
            schema,
            lambda data: self._verdict_rule(data) or ("no_answer" if not data.get("answer") else None),
            sees=sees,
        )
        self.text = answer_of(self.ask, self.question.answer_format, told.data)
        self.history.append(("Revised answer", told.label))
        agrees, keeps = bool(told.data["agrees"]), tuple(texts(told.data, "keeps"))
        self._make(Move(by="proposer", kind="reply", agrees=agrees, keeps=keeps), told.label)

    async def _settle(self) -> None:
        self.settlements += 1
        assert self.state.offered is not None
        schema = closed({"accepts": FLAG, "reasoning": REASONING})
        told = await ask_schema(
            self.ask,
            f"settle/{self.settlements}",
            "proposer",
            user(self._rendered("dialectic_settle", offered=self._open(self.state.offered))),
            schema,
            lambda data: None if isinstance(data.get("accepts"), bool) else "accepts_is_true_or_false",
            sees=(*task_labels(self.question), *self._labels()),
        )
        self.history.append(("Settlement", told.label))
        self._make(Move(by="proposer", kind="settle", agrees=bool(told.data["accepts"])), told.label)

    async def _told(
        self,
        purpose: str,
        role: str,
        values: dict[str, str],
        schema: dict[str, JsonValue],
        sees: tuple[str, ...],
        rule: object,
    ) -> Told:
        text = prompts.render(prompts.load(f"dialectic_{purpose}"), task=task_text(self.question), **values)
        return await ask_schema(self.ask, purpose, role, user(text), schema, rule, sees=sees)  # type: ignore[arg-type]

    def _rendered(self, name: str, **values: str) -> str:
        history = "\n\n".join(f"{what}:\n{{{{{label}}}}}" for what, label in self.history)
        return prompts.render(prompts.load(name), task=task_text(self.question), history=history, **values)

    def _labels(self) -> tuple[str, ...]:
        """The labels of the history, and the texts of the conditions, which come from replies."""
        derived = [
            self.ask.derive(f"condition/{one}", text, (self.history[0][1],))
            for one, (_, text) in self.conditions.items()
        ]
        return (*(label for _, label in self.history), *derived)

    def _open(self, ids: tuple[str, ...]) -> str:
        """The open conditions as slots: their texts come from a reply and are quoted."""
        return "\n".join(f"{one}: {{{{condition/{one}}}}}" for one in ids) or "none"

    def _ids(self) -> JsonValue:
        known: list[JsonValue] = list(self.state.proposed)
        if not known:
            return {"type": "array", "items": {"type": "string"}, "maxItems": 0}
        return {"type": "array", "items": {"type": "string", "enum": known}, "maxItems": len(known)}

    def _verdict_rule(self, data: dict[str, JsonValue]) -> str | None:
        if not isinstance(data.get("agrees"), bool):
            return "agrees_is_true_or_false"
        if not isinstance(data.get("keeps"), list):
            return "keeps_is_a_list"
        unknown = [one for one in texts(data, "keeps") if one not in self.state.proposed]
        return "an_unknown_condition" if unknown else None

    def answer(self, seat: str) -> Answer:
        """The proposer's last answer with all that an analyst may ask of the episode."""
        labels = dict(self.history)
        objection, verdict = labels.get("Objection"), labels.get("Verdict")
        identical = objection is not None and verdict is not None and self.ask.saw(objection) == self.ask.saw(verdict)
        agreed: list[JsonValue] = [
            {"id": one, "author": self.conditions[one][0], "text": self.conditions[one][1]}
            for one in self.state.agreed or ()
        ]
        return Answer(
            text=self.text,
            finish="stop",
            detail={
                "outcome": self.state.end,
                "seat": seat,
                "rounds": self.state.round,
                "judgment_formed": self.formed,
                "degraded": self.degraded,
                "acceptance": self.state.acceptance,
                "agreed": agreed,
                "antithesis_equals_verdict": identical,
                "moves": self.transcript,
            },
        )


def _thesis_rule(data: dict[str, JsonValue]) -> str | None:
    if not data.get("answer"):
        return "no_answer"
    if not said(data, "crux"):
        return "no_crux"
    return None if texts(data, "commitments") else "a_thesis_needs_a_commitment"


def _antithesis_rule(data: dict[str, JsonValue]) -> str | None:
    return None if said(data, "reasoning") else "the_reasoning_is_required"
