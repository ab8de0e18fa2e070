"""Make tasks/advice/tasks.jsonl: `python -m tasks.advice.make`. The questions were written for this pool."""

from __future__ import annotations

from harness.records import Task
from tasks.making import write

QUESTIONS: list[tuple[str, str]] = [
    (
        "How should a team of five decide between two software designs when nobody has tried either?",
        "Build the riskiest part of each for a day.",
    ),
    (
        "What is a sensible first step for somebody who wants to run five kilometres and cannot run one?",
        "Alternate short runs with walking, three times a week.",
    ),
    (
        "How can a teacher notice early that a class did not understand a lesson?",
        "Ask each pupil for one sentence or one solved example before the end.",
    ),
    ("What should a small shop do before it raises its prices?", "Compare with neighbours and try it on a few goods."),
    (
        "How can two neighbours settle a dispute about noise without a court?",
        "Agree on hours and a way to complain early.",
    ),
    ("What makes a weekly meeting worth keeping?", "A decision each week that needs the people in the room."),
    (
        "How should one store a month of dry food in a small kitchen?",
        "Closed jars, labels with dates, oldest in front.",
    ),
    ("What should one check before lending a tool to a friend?", "When it comes back, and who pays if it breaks."),
    (
        "How can somebody learn whether a used bicycle is worth its price?",
        "Look at frame, chain, brakes and wheels, then ride it.",
    ),
    (
        "What is a fair way to share housework between three people?",
        "List the tasks, estimate the time of each, rotate the disliked ones.",
    ),
    (
        "How should a village decide where to put one new bench?",
        "Count who passes where, and ask those who walk slowly.",
    ),
    (
        "What should a beginner write down after each chess game that was lost?",
        "The first move at which the position became worse, and why.",
    ),
    ("How can a library find out which books to remove?", "Look at loans over some years and keep what is unique."),
    ("What helps a person to fall asleep after late work?", "A fixed hour, dim light, and no screen before it."),
    (
        "How should an office prepare for an hour without electricity?",
        "Save the work, charge lamps and telephones, agree on who calls whom.",
    ),
    (
        "What is a good way to thank a colleague who helped in a crisis?",
        "Say precisely what helped, also to those who decide about them.",
    ),
    ("How can a gardener save water in a dry summer?", "Water early, deep and seldom, and cover the soil."),
    (
        "What should a family agree on before it takes a dog?",
        "Who walks it when, what it costs, and who has it in the holidays.",
    ),
    (
        "How should one explain a delay to a customer?",
        "Early, with the reason, a new date, and what is done meanwhile.",
    ),
    (
        "What should somebody do first who has lost the key to a rented flat?",
        "Tell the landlord and ask who holds a second one.",
    ),
    (
        "How can a choir choose songs that most singers like?",
        "Let each propose some, vote by points, and keep variety.",
    ),
    ("What is a safe way to try a new food with a small child?", "A small amount, alone, in the morning, and watch."),
    (
        "How should a student choose between two courses at the same hour?",
        "Which cannot be taken later, and which is needed next.",
    ),
    (
        "What should a traveller copy before a long journey?",
        "Passport, tickets, insurance and card numbers, kept apart.",
    ),
    (
        "How can a club keep its members when the founder leaves?",
        "Spread the tasks before, and let others lead events.",
    ),
    (
        "What should one look at first in a contract for a telephone?",
        "How long it binds, what it costs in all, and how it ends.",
    ),
    (
        "How should one begin to repair a chair that wobbles?",
        "Find the loose joint, clean out old glue, glue and clamp it.",
    ),
    ("What is a good rule for when to send an angry letter?", "Write it today, read it tomorrow, send it only then."),
    (
        "How can a cafe find out why fewer people come?",
        "Count by hour, ask those who still come, and look at what changed nearby.",
    ),
    ("What should a mentor ask in the first conversation?", "What the other wants to be able to do in half a year."),
]


def make() -> list[Task]:
    """All tasks: the first half for development, the second held out."""
    half = len(QUESTIONS) // 2
    return [
        Task(
            id=f"{'dev' if number < half else 'heldout'}-{number % half + 1:02d}",
            family="advice",
            split="dev" if number < half else "heldout",
            prompt=question,
            answer_format="text",
            reference=point,
            ground_truth="judged",
        )
        for number, (question, point) in enumerate(QUESTIONS)
    ]


if __name__ == "__main__":
    write(__file__, "tasks.jsonl", make())
