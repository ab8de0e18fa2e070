"""What the harness adds to a call: a scripted study against the bare scripted model under the same number of calls, in one run.

`python -m tests.bench.bench_run [--quick]`. Prints milliseconds of CPU a call and the ratio; the receipts are durable (fsync).
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from harness.models import Models
from harness.records import Call, Context, Message, ModelSpec, Request
from tests.build import ALL_ARMS, run_study, write_study


def bare(calls: int) -> float:
    """CPU seconds of so many calls of the scripted model alone."""
    context = Context(owner="o", task_id="t", role="solver", purpose="p", finished_attempts=0, right="yes", wrong="no")

    async def go() -> None:
        async with Models({"m": ModelSpec(name="scripted/skill")}, Path()) as models:
            for number in range(calls):
                request = Request(
                    messages=(Message(role="user", text="x" * 300),),
                    temperature=0.7,
                    top_p=None,
                    max_tokens=100,
                    seed=number,
                )
                await models.complete("m", request, context)

    began = time.process_time()
    asyncio.run(go())
    return time.process_time() - began


def through_the_harness(repeats: int) -> tuple[float, int]:
    """CPU seconds and calls of a whole run: freeze, receipts, checks, seal."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        arms = {"best3": ALL_ARMS["best3"], "reflection": ALL_ARMS["reflection"]}
        path = write_study(root, arms=arms, pools=[{"family": "countdown", "sample": 40}], repeats=repeats)
        began = time.process_time()
        run = run_study(path, root / "results")
        return time.process_time() - began, sum(isinstance(entry, Call) for entry in run.log.entries)


def main() -> None:
    """Print both, and the ratio."""
    repeats = 2 if "--quick" in sys.argv else 12
    seconds, calls = through_the_harness(repeats)
    alone = bare(calls)
    print(f"{calls} calls, durable receipts")
    print(f"harness        {1000 * seconds / calls:8.3f} ms of CPU a call")
    print(f"model alone    {1000 * alone / calls:8.3f} ms of CPU a call")
    print(f"ratio          {seconds / alone:8.2f}")


if __name__ == "__main__":
    main()
