"""Progress on a terminal (a live line by rich) or as plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from harness.progress import Progress
from harness.run import Watch

SECONDS_BETWEEN_LINES = 10.0


@contextmanager
def watching() -> Iterator[Watch]:
    """A watch that shows progress until the block ends."""
    if sys.stderr.isatty():
        with _live() as watch:
            yield watch
    else:
        yield _plain()


def _plain() -> Watch:
    last = [0.0]

    def watch(progress: Progress) -> None:
        at_end = progress.units >= progress.trials + progress.pairs
        if at_end or time.monotonic() - last[0] >= SECONDS_BETWEEN_LINES:
            last[0] = time.monotonic()
            print(f"  {progress.phase}: {progress.line()}", file=sys.stderr, flush=True)

    return watch


@contextmanager
def _live() -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.fields[phase]}"), BarColumn(bar_width=None), TextColumn("{task.fields[line]}"))
    with Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), refresh_per_second=4) as bar:
        task = bar.add_task("", total=1, phase="trials", line="")

        def watch(progress: Progress) -> None:
            bar.update(
                task,
                total=progress.trials + progress.pairs,
                completed=progress.units,
                phase=progress.phase,
                line=progress.line(),
            )

        yield watch
