"""The end of `docs/format.md`: what sets keys from outside the file, and a whole `[serve]` to copy from."""

from __future__ import annotations

from runner.config.first_generation import all_settings

SERVE = """\
[serve]
host              = "127.0.0.1"            # "0.0.0.0" for every address: then api_key, or allow_anonymous = true
port              = 9000                   # 0 takes any that is free
workers           = 1                      # processes behind the port, which share the work
max_concurrent    = 256                    # rollouts that play at once, in all workers
max_queue         = 4096                   # that wait, in all workers; then 429 with Retry-After
api_key           = { env = "ROLLOUT_API_KEY" }
allow_anonymous   = false
dialect           = "auto"                 # auto | agent-loop | multi-sample | single-sample
start_status      = 202                    # 202 | 200: the answer to a multi-sample start
enforce_deadlines = false                  # whether the time-outs of multi-sample starts count
dedupe            = "join"                 # join | reject | run: a start whose id is known
drain             = "30s"                  # how long rollouts may go on after SIGTERM
record_ttl        = "1h"                   # how long an ended rollout is remembered
cleanup_interval  = "60s"
request_timeout   = "60s"                  # for a request to arrive whole
max_body          = "64MiB"                # then 413
max_metadata      = "1MiB"                 # then 422
allow_callbacks   = ["http://*", "https://*"]   # name yours: ["https://trainer.example:8443/*"]
state             = "state/rollouts.db"    # accepted rollouts and undelivered callbacks survive a restart
on_restart        = "run"                  # run | fail: rollouts that a restart cut off
report_cancelled  = false                  # callbacks for rollouts that the controller cancelled
sample            = "main"                 # x-sample-id, and the key in `samples`
max_messages      = "8MiB"                 # default: all are sent
archive           = "archive"              # trajectory, diagnostics and artifacts of each rollout; default: none

[serve.chat]                               # to the endpoint that the controller names
timeout    = "5m"
retries    = { attempts = 4, max_wait = "30s" }
base_wait  = "500ms"                       # before the second try, then twice as long each time
stream     = "auto"                        # "auto" | true | false
join_text  = true                          # text parts become one string
max_answer = "8MiB"                        # a longer answer fails the rollout

[serve.callbacks]                          # results, until they are acknowledged
timeout     = "10s"
attempts    = 100                          # default: only give_up ends it
give_up     = "24h"
base_wait   = "500ms"
max_wait    = "30s"
concurrency = 64                           # posts at once to one origin

[serve.connections]                        # outgoing, to one origin
max  = 1000                                # default: no limit
idle = 100                                 # default: all

[serve.log]
level     = "info"                         # debug | info | warning | error
format    = "console"                      # console | json | plain
rollouts  = false                          # a line for each rollout that ends
summary   = "30s"                          # how often a line says how much was done
timestamp = true
caller    = false

[serve.metrics]
enabled        = true
prefix         = "osmosis_rollout"
default_labels = true
expose         = true                      # GET /metrics

[serve.trace]
enabled      = false
service_name = "osmosis-rollout"
exporter     = "otlp"                      # otlp | jaeger | zipkin | console | none
endpoint     = "http://localhost:4317"
sample_rate  = 1.0
propagators  = ["tracecontext", "b3"]      # and baggage

[serve.hypercorn]                          # hypercorn's own settings
certfile                  = "tls/cert.pem" # TLS; relative to this file
keyfile                   = "tls/key.pem"
backlog                   = 1024
h2_max_concurrent_streams = 256
"""
"""Every key of `[serve]`, most with their defaults."""

_OUTSIDE = """
## From outside the file

Later wins: `extends`, the file, the profile, the cell of a matrix, the variables below,
`OSMOSIS_RUN__SECTION__KEY=value` (the value is TOML or a bare word), `--set section.key=value`. What set a key, and
what that overrode, says `osmosis-run explain KEY`.

Of a `.env` file beside the workflow file only the variables of the table below are read, and the process's own win over
them; `explain` shows both. Nothing else comes out of it: no `OSMOSIS_RUN__` key, no API key or secret, nothing that
tools and graders see. What a run was given is what its process was given; `set -a; . ./.env` gives it all.
Its lines are `NAME=value`, `export NAME=value`, `NAME='as it is'`, `NAME="with \\n and ${OTHER}"`, `${OTHER:-default}`,
and comments behind `#`; a line that is none of these is a warning, and an error if one of these names stands on it.

### Variables of the first generation

The settings of the first SDK set the same keys, and only these. Seconds become durations, a number of retries one try
more. An empty one sets nothing; one out of range is an error, and a name that is nearly one of these a warning.

| variable | sets | takes |
|---|---|---|"""

_SERVE = """
## A whole `[serve]`

Every key, most with their defaults. A file that is only served needs no `[serve]` at all.

```toml
"""


def tail() -> str:
    """The sections that follow the tables of keys."""
    rows = [
        f"| `{name}` | {', '.join(f'`serve.{key}`' for key in setting.keys)} | {setting.range} |"
        for name, setting in all_settings().items()
    ]
    return "\n".join((_OUTSIDE, *rows)) + f"\n{_SERVE}{SERVE}```\n"
