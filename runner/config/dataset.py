"""`[dataset]`: where rows come from, and which."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.config.reference import Location
from runner.config.section import RESULT, Section

ROWS_PATTERN = r"^\s*\d+(?:-\d+)?(?:\s*,\s*\d+(?:-\d+)?)*\s*$"


class Shuffle(Section):
    """An order that depends on the seed only."""

    seed: int = 0
    """The same seed gives the same order."""


class DatasetSection(Section):
    """Where rows come from, and which."""

    path: Location | None = None
    """The dataset, relative to the file that says so. The command line's DATASET wins."""
    format: Literal["jsonl", "csv", "parquet"] | None = None
    """Default: by the file's suffix."""
    id: str | None = None
    """The column that names a row. Default: `id` where every row has one, else the row's place."""
    columns: Annotated[dict[str, str], RESULT] = Field(default_factory=dict)
    """Our name = the dataset's column: `{ user_prompt = "question", ground_truth = "answer" }`."""
    shuffle: Shuffle | None = None
    """Take rows in another order, by seed. Default: the file's order, streamed."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Only so many rows, counted after shuffling. Default: all."""
    rows: Annotated[str, Field(pattern=ROWS_PATTERN)] | None = None
    """Only these rows, by place from 0: `"3,7,10-20"`. Default: all."""
