"""The exceptions of the first generation's local commands and of its judge.

DatasetParseError, DatasetValidationError   a dataset that cannot be read, or lacks what a prompt needs
EvalFnError                                 a function that cannot score
ToolValidationError                         a tool that no model could be offered
ProviderError                               a model that did not answer
└── SystemicProviderError                   and would answer no other row either
ProviderRequestError                        a judge that did not answer
└── ModelNotFoundError                      because there is no such model
MissingAPIKeyError                          a judge without a key
MCPLoadError                                a server of tools that cannot be loaded
"""

from __future__ import annotations


class DatasetParseError(ValueError):
    """A dataset whose text cannot be read."""


class DatasetValidationError(ValueError):
    """A row that lacks what a prompt needs."""


class EvalFnError(Exception):
    """A function that cannot score."""


class ToolValidationError(Exception):
    """A tool that no model could be offered."""


class MCPLoadError(Exception):
    """A server of tools that cannot be loaded."""


class ProviderError(Exception):
    """The model did not answer. `duration_ms` and `tokens` are what was spent until then."""

    def __init__(self, message: str, duration_ms: float = 0.0, tokens: int = 0) -> None:
        super().__init__(message)
        self.duration_ms = duration_ms
        self.tokens = tokens


class SystemicProviderError(ProviderError):
    """Nor would it answer another row: no key, no such model, nobody there."""


class MissingAPIKeyError(Exception):
    """A judge without a key."""


class ProviderRequestError(Exception):
    """The judge did not answer. `detail` says why."""

    def __init__(self, provider: str, model: str, detail: str) -> None:
        super().__init__(f"{provider}/{model}: {detail}")
        self.provider = provider
        self.model = model
        self.detail = detail


class ModelNotFoundError(ProviderRequestError):
    """There is no such model."""
