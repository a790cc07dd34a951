"""`[serve]`: how the file is offered to controllers, and what a server may use. Nothing here changes a rollout."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runner.config.model import Retries, Secret, Switch
from runner.config.quantity import Bytes, Delay, Seconds
from runner.config.reference import Location
from runner.config.section import Array, Section
from runner.config.serve_watch import LogSection, MetricsSection, TraceSection


class ChatRetries(Retries):
    """How often and how patiently a chat call to the controller is tried again."""

    attempts: Annotated[int, Field(ge=0, le=100)] = 4
    """Tries in all, on 408, 409, 429, 5xx and broken connections; 0 and 1 both try once."""
    max_wait: Seconds = 30.0
    """The longest pause between two tries; also caps the endpoint's own Retry-After."""


class ChatSection(Section):
    """Chat calls to the endpoint that the controller names."""

    timeout: Seconds = 300.0
    """How long one try of one call may take. Default 5 minutes: an endpoint that trains answers late."""
    retries: ChatRetries = ChatRetries.model_construct()
    """How often and how patiently a call is tried again."""
    base_wait: Seconds = 0.5
    """The pause before the second try; each further one is twice as long."""
    stream: Switch = "auto"
    """Ask for the completion piece by piece. `"auto"`: whole for agent-loop controllers, else streamed, as each
    expects."""
    join_text: bool = True
    """Send a content of several text parts as one string, since some controllers keep only the first part."""
    max_answer: Bytes = 8 * 2**20
    """The longest answer that is read; a longer one fails the rollout. Reading holds up every other rollout for as
    long as it takes, some milliseconds a MiB."""


class CallbacksSection(Section):
    """Delivery of results to the controller: at least once, in order, never a contradiction."""

    timeout: Seconds = 10.0
    """How long one post may take."""
    attempts: Annotated[int, Field(ge=1)] | None = None
    """Posts of one callback before it is abandoned. Default: only `give_up` ends it."""
    give_up: Seconds = 86400.0
    """How long a callback is tried before it is abandoned: kept, shown by `/health`, and tried again after a restart.
    Default a day: a trainer that is repaired overnight still gets its results."""
    base_wait: Seconds = 0.5
    """The pause before the second post; each further one is twice as long."""
    max_wait: Seconds = 30.0
    """The longest pause between two posts; also caps the controller's own Retry-After."""
    concurrency: Annotated[int, Field(ge=1)] = 64
    """Posts in flight to one origin."""


class ConnectionsSection(Section):
    """The pool of outgoing connections to one origin, shared by chat calls and callbacks."""

    max: Annotated[int, Field(ge=1)] | None = None
    """Open at once. Default: no limit but what is asked at once."""
    idle: Annotated[int, Field(ge=1)] | None = None
    """Kept open while unused. Default: all of them, for a while."""


class ServeSection(Section):
    """How the file is offered to controllers by `osmosis-run serve`, and what the server may use."""

    host: Annotated[str, Field(pattern=r"^[^\s/?#@]+$")] = "127.0.0.1"
    """The address to listen at. Default: this machine only. `0.0.0.0` is every address, and then a key is needed."""
    port: Annotated[int, Field(ge=0, le=65535)] = 9000
    """The port to listen at; 0 takes any that is free, and says which."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 1
    """Processes behind the one port, which share the work and the limits."""
    max_concurrent: Annotated[int, Field(ge=1)] = 256
    """Rollouts that play at once, in all workers together."""
    max_queue: Annotated[int, Field(ge=0)] = 4096
    """Rollouts that wait for a place, in all workers together; the next one is answered 429 with `Retry-After`."""
    api_key: Secret | None = None
    """`{ env = "NAME" }`: the variable that holds the key controllers must present. Default: none is asked for."""
    allow_anonymous: bool = False
    """Serve without a key on an address that other machines reach. Default: that is an error, since whoever reaches
    the port could spend your endpoint and run your tools."""
    dialect: Literal["auto", "agent-loop", "multi-sample", "single-sample"] = "auto"
    """The generation of the protocol that controllers speak. `"auto"` tells by each request."""
    start_status: Literal[200, 202] = 202
    """What the start of a multi-sample rollout is answered with, where nothing tells what its controller expects."""
    enforce_deadlines: bool = False
    """Whether `agent_timeout_sec` and `grader_timeout_sec` of a multi-sample start count. Default: they are for
    backends of that generation's own. Those of single-sample starts always do."""
    dedupe: Literal["join", "reject", "run"] = "join"
    """A start with the id of a rollout that is known: `join` gives it the first one's answer, `reject` answers 409,
    `run` plays another. Default: `join`, since a verdict once sent must not be contradicted."""
    drain: Delay = 30.0
    """How long rollouts may go on after the server is asked to stop; what is left over then is reported as failed."""
    record_ttl: Seconds = 3600.0
    """How long an ended rollout is remembered, for `/rollout/{id}/status` and for repeated starts."""
    cleanup_interval: Seconds = 60.0
    """How often ended rollouts are looked through for ones to forget."""
    request_timeout: Seconds = 60.0
    """How long a request may take to arrive whole."""
    max_body: Bytes = 64 * 2**20
    """The largest request body; a larger one is answered 413."""
    max_metadata: Bytes = 2**20
    """The largest `metadata` of a start, as JSON with non-ASCII escaped; a larger one is answered 422."""
    allow_callbacks: Annotated[Array[str], Field(min_length=1)] = ("http://*", "https://*")
    """Patterns of the URLs that a start may name for chat and callbacks: scheme, host, port and path, `*` for
    anything. Default: any, since a trainer may be anywhere; name yours where it is known."""
    state: Location = Location("state/rollouts.db")
    """The file that keeps accepted rollouts and results not yet delivered, so that both survive a restart."""
    on_restart: Literal["run", "fail"] = "run"
    """A rollout that a restart cut off: `run` plays it again, `fail` reports it as failed."""
    report_cancelled: bool = False
    """Send callbacks for rollouts that the controller cancelled. Default: it knows."""
    sample: Annotated[str, Field(pattern=r"^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$")] = "main"
    """What the one sample of a rollout is called to a multi-sample controller, where the agent gives it no name: the
    `x-sample-id` header, and its key in `samples`."""
    max_messages: Bytes | None = None
    """How large the messages of one callback may be; beyond it the middle ones are cut, and a marker says so. Default:
    all are sent."""
    archive: Location | None = None
    """A folder for the trajectory (ATIF), diagnostics and artifacts of each rollout. Default: none are kept."""
    chat: ChatSection = ChatSection.model_construct()
    """Chat calls to the endpoint that the controller names."""
    callbacks: CallbacksSection = CallbacksSection.model_construct()
    """Delivery of results to the controller."""
    connections: ConnectionsSection = ConnectionsSection.model_construct()
    """The pool of outgoing connections."""
    log: LogSection = LogSection.model_construct()
    """What the server writes as it works."""
    metrics: MetricsSection = MetricsSection.model_construct()
    """Numbers for Prometheus."""
    trace: TraceSection = TraceSection.model_construct()
    """OpenTelemetry spans."""
    hypercorn: dict[str, Any] = Field(default_factory=dict)
    """Settings of hypercorn under its own names: `certfile` and `keyfile` for TLS, `backlog`,
    `h2_max_concurrent_streams`. What has a key above is set there."""
