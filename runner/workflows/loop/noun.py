"""`Noun`: a record of the wire whose validator is only built when one is made: most files have no agent loop."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Noun(BaseModel):
    """A record of the first generation's wire."""

    model_config = ConfigDict(defer_build=True)
