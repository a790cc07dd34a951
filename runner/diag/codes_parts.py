"""The codes of findings about what a workflow refers to: names, code, schemas, templates, data."""

from __future__ import annotations

from runner.diag.code import Code

PART_CODES = (
    Code(
        "bad-reference",
        "the value does not name code",
        "Code is named as `module:name` or `./file.py:name`, with the module as in an import statement.",
        '[tools.search]\ncall = "support.tools.search"',
        'Put a colon before the name: "support.tools:search".',
    ),
    Code(
        "import-failed",
        "the module cannot be imported",
        "The module is not there, or its own code raised while it was imported. The last line of your code that "
        "ran is in the notes.",
        '[tools.search]\ncall = "suport.tools:search"',
        "Correct the name, install the package, or mend the module. Modules are looked up from the folder of the file "
        "first. `--no-import` checks a file without running any of its code.",
    ),
    Code(
        "no-such-name",
        "the module has no such name",
        "The module was imported but defines nothing of that name.",
        '[tools.search]\ncall = "support.tools:serch"',
        "Correct the part after the colon; near names are suggested.",
    ),
    Code(
        "not-callable",
        "the name is not something that can be called",
        "A tool, a Python grader or a resource is a function or a class; the name stands for something else.",
        '[tools.search]\ncall = "support.tools:VERSION"',
        "Name a function or a class.",
    ),
    Code(
        "signature-missing",
        "the function requires a parameter that nobody gives",
        "A parameter without a default is neither in the schema nor injected nor in `config`: every call would fail.",
        'parameters = { type = "object", properties = {} }\n# def search(query: str): ...',
        "Add it to the schema (or to `config`), inject it with `inject`, or give it a default in the function.",
    ),
    Code(
        "signature-extra",
        "the function does not take what it would be given",
        "The JSON Schema lets the model send an argument, or `config` gives one, for which the function has no "
        "parameter.",
        'properties = { query = { type = "string" }, page = { type = "integer" } }\n# def search(query: str): ...',
        "Take it out of the schema or the config, or add the parameter to the function; **kwargs takes everything.",
    ),
    Code(
        "signature-type",
        "schema and function disagree on a type",
        "The JSON Schema lets the model send values that the function's type hint does not allow.",
        'properties = { top_k = { type = "string" } }\n# def search(top_k: int): ...',
        'Change one of the two; `parameters = "signature"` derives the schema from the hints.',
    ),
    Code(
        "signature-required",
        "schema and function disagree on what is required",
        "The schema lets the model leave out an argument for which the function has no default.",
        'properties = { query = { type = "string" } }     # not in `required`\n# def search(query: str): ...',
        "Put the name into `required`, or give the parameter a default.",
    ),
    Code(
        "signature-inject",
        "an injected argument does not fit the function or its schema",
        "`inject` gives an argument that the function does not take, or one that the schema offers the model too.",
        '[tools.lookup]\ninject = { database = "resource:orders" }     # def lookup(order_id: str, db): ...',
        "Name a parameter of the function, and leave what is injected out of the schema.",
    ),
    Code(
        "signature-unusable",
        "the function cannot be offered to a model",
        "A model names its arguments and sends JSON. A positional-only parameter, `*args`, or a hint that has no JSON "
        "form cannot be reached that way.",
        '[tools.query]\ncall = "app.db:query"     # def query(connection: Connection, sql: str): ...',
        "Change the signature, inject the parameter, or write `parameters` as a JSON Schema.",
    ),
    Code(
        "unfit-code",
        "the code is there but cannot do this",
        "A Python grader has one of three signatures or is a `Grader` class; an agent is an `AgentWorkflow` with an "
        "`async def run(ctx)`, or a `RolloutAgentLoop` with a `name`, `get_tools` and `run`. The finding "
        "says what the code lacks.",
        '[workflow]\nagent = "app.agents:Planner"     # class Planner: ...',
        "Give the code the shape that the finding names, or name other code.",
    ),
    Code(
        "bad-json-schema",
        "the JSON Schema is not valid",
        "`parameters` and `schema` are JSON Schema, draft 2020-12, and are checked against its own schema.",
        'parameters = { type = "object", properties = { query = { type = "strng" } } }',
        "Correct the place that the note names.",
    ),
    Code(
        "bad-regex",
        "the regular expression cannot be compiled",
        "Patterns are regular expressions of Python's `re`.",
        "[graders.answer]\nkind = \"regex\"\npattern = '(\\d+'",
        "Correct the pattern; the caret stands where reading stopped. Single quotes spare you doubled backslashes.",
    ),
    Code(
        "template-syntax",
        "the template cannot be read",
        "Prompts, labels and expectations are Jinja2 templates.",
        '[workflow]\nuser = "{{ row.question }"',
        "Correct the template; braces that are meant as such are written {{ '{{' }}.",
    ),
    Code(
        "unknown-variable",
        "the template uses a name that does not exist",
        "Templates are strict: a name that is not there is an error, not an empty text.",
        '[workflow]\nuser = "{{ rwo.question }}"',
        "Correct the name; the names that exist are listed.",
    ),
    Code(
        "missing-column",
        "a row lacks a column that is needed",
        "A template or a grader needs a column. Without --dataset the first rows are looked at, with it every row; the "
        "finding names the first row that lacks the column.",
        '[workflow]\nuser = "{{ row.question }}"      # and row 17 has no `question`',
        "Mend the dataset, map the column with [dataset] columns, or write {{ row.question | default('') }}.",
    ),
    Code(
        "unknown-tool",
        "there is no such tool",
        "The name or pattern matches none of the tools that the file declares.",
        '[workflow]\ntools = ["serch"]',
        "Correct the name, or declare the tool under [tools.NAME].",
    ),
    Code(
        "unknown-grader",
        "there is no such grader",
        "Weights, gates and measured graders are named as under [graders].",
        "[reward]\nweights = { anser = 1.0 }",
        "Correct the name, or declare the grader under [graders.NAME].",
    ),
    Code(
        "unknown-role",
        "there is no such role",
        "A rubric names the model that judges by its role.",
        '[graders.tone]\nkind = "rubric"\nrole = "jugde"',
        "Correct the name, or declare the model under [roles.NAME].",
    ),
    Code(
        "unknown-resource",
        "there is no such resource",
        "`inject` hands a resource to a tool by its name under [resources].",
        '[tools.lookup]\ninject = { db = "resource:ordrs" }',
        "Correct the name, or declare the resource under [resources.NAME].",
    ),
    Code(
        "unknown-sandbox",
        "there is no such sandbox",
        "Built-in tools and graders that run something do it in a sandbox, by its name under [sandboxes]. One that is "
        "the only one need not be named.",
        '[tools.shell]\nbuiltin = "bash"\nsandbox = "wrok"',
        "Correct the name, or declare the sandbox under [sandboxes.NAME].",
    ),
    Code(
        "missing-path",
        "there is no such file or folder",
        "A path that a sandbox mounts or copies is looked up from the folder of the file that says it.",
        '[sandboxes.work]\ncopy = { "repso/calc" = "." }',
        "Correct the path, or make what it names.",
    ),
    Code(
        "duplicate-name",
        "two things have the same name",
        "Names tell parts apart, so two of one kind may not share one.",
        'criteria = [{ id = "polite", text = "..." }, { id = "polite", text = "..." }]',
        "Rename one of them.",
    ),
    Code(
        "unused-weight",
        "a weight has no effect",
        "The weight is zero, its grader is only measured, or `combine` takes no weights, so it does not change "
        "any reward.",
        '[reward]\ncombine = "min"\nweights = { answer = 0.7 }',
        "Remove the weight, or choose a `combine` that uses it.",
    ),
    Code(
        "gate-never",
        "a gate can never hold",
        "The threshold lies outside of what the grader or metric can reach, so the gate always or never fires.",
        '[reward]\ngates = [{ grader = "answer", below = -1.0, reward = 0.0 }]',
        "Correct the threshold.",
    ),
    Code(
        "limits-conflict",
        "two limits contradict each other",
        "One limit makes another useless, as when one tool call may take longer than the whole rollout.",
        '[limits]\ntime = "10s"\ntool_time = "30s"',
        "Change one of the two; both places are shown.",
    ),
    Code(
        "secret-missing",
        "a secret is not set",
        "The workflow needs an environment variable that is not set or is empty.",
        '[secrets]\nrequired = ["OPENAI_API_KEY"]',
        "Set it in the shell that starts the command: export OPENAI_API_KEY=...",
    ),
    Code(
        "open-server",
        "anybody could use the server",
        "The address is one that other machines reach, and no key is asked for. Whoever finds the port could spend "
        "your endpoint and run your tools.",
        '[serve]\nhost = "0.0.0.0"',
        'Name a key, `api_key = { env = "ROLLOUT_API_KEY" }`, or say that you mean it: `allow_anonymous = true`.',
    ),
    Code(
        "reserved-name",
        "a name that a file may not set",
        "Variables whose names begin with _OSMOSIS_ are the platform's: it sets them for the server it starts.",
        '[env]\n_OSMOSIS_ROLLOUT_PORT = "9000"',
        "Set the key of [serve] instead, as the finding says.",
    ),
    Code(
        "dataset-missing",
        "there is no dataset",
        "The path names no file, or no dataset is named in the file or on the command line.",
        '[dataset]\npath = "data/tikets.jsonl"',
        "Correct the path. It is looked up from the folder of the file that says it.",
    ),
    Code(
        "dataset-bad",
        "the dataset cannot be read",
        "A line is not valid JSON, the table has no header, or the file is not of the format that its name says.",
        '{"question": "1 + 1", "answer": 2',
        "Mend the line that the finding names, or set [dataset] format.",
    ),
)
