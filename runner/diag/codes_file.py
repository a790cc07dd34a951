"""The codes of findings about the text itself, its keys and its values."""

from __future__ import annotations

from runner.diag.code import Code

FILE_CODES = (
    Code(
        "syntax",
        "the file is not TOML",
        "The text breaks the rules of TOML, so nothing in it can be read. Only the first such place is reported, "
        "because what follows it cannot be told apart any more.",
        "[sampling]\ntemperature = warm",
        'Write what the caret\'s label says. Text stands in quotes ("warm"); a regular expression is best put '
        "in single "
        "quotes, in which a backslash is only a backslash.",
    ),
    Code(
        "duplicate-key",
        "a key or table is defined twice",
        "TOML lets each key be set once and each table be opened once. The second place is marked, the first is shown "
        "beside it.",
        "[sampling]\ntemperature = 0.7\ntemperature = 1.0",
        "Remove one of the two, or merge the two tables.",
    ),
    Code(
        "not-found",
        "there is no such file",
        "The path names nothing. It is looked up from the folder in which the command runs; paths inside a workflow "
        "file are looked up from the folder of that file.",
        'extends = ["bse.toml"]',
        "Correct the path; the finding names files of the folder that are spelt alike. `osmosis-run init` "
        "writes a first workflow.",
    ),
    Code(
        "not-readable",
        "the file is there but cannot be read",
        "The path names a folder, or the file system refuses to hand the file out.",
        "osmosis-run validate configs/",
        "Name the file in the folder, or allow reading it with `chmod u+r FILE`.",
    ),
    Code(
        "bad-encoding",
        "the file is not UTF-8 text",
        "TOML is UTF-8. A file saved as UTF-16 or Latin-1, or a binary file, has bytes that mean nothing in "
        "UTF-8; the finding names the first of them.",
        'description = "caf\\xe9"    # é saved as the one byte of Latin-1',
        "Save the file as UTF-8. `iconv -f latin1 -t utf-8 OLD > NEW` converts one.",
    ),
    Code(
        "unknown-key",
        "the table has no such key",
        "Keys are checked strictly: one that is not part of the format would silently do nothing, which is "
        "worse than an error.",
        "[sampling]\ntemprature = 0.7",
        "Correct the spelling; the nearest key is named when there is one. `osmosis-run schema` lists all keys. "
        "Values of your own belong into `[workflow] config`.",
    ),
    Code(
        "misplaced-key",
        "the key belongs into another table",
        "The key exists, but elsewhere in the format.",
        '[model]\nid = "openai/gpt-5-mini"\ntemperature = 0.7     # belongs into [sampling]',
        "Move the line to the table that the finding names.",
    ),
    Code(
        "renamed-key",
        "the key has another name now",
        "The key was part of an older format or is what other tools call it.",
        "[limits]\nmax_steps = 12        # now `turns`",
        "Use the new name, or let `osmosis-run validate --fix` write it.",
    ),
    Code(
        "missing-key",
        "a key that must be there is not",
        "The table cannot work without this key, and there is no default that would be right for everyone.",
        '[graders.answer]\nexpect = "{{ label }}"     # `kind` is missing',
        "Add the key.",
    ),
    Code(
        "one-of",
        "the table wants one key out of several",
        "Some tables choose between their keys: none, or two that exclude each other, say nothing clear.",
        '[graders.answer]\nkind = "exact"\nextract = { tag = "answer", after = "####" }',
        "Keep exactly one of the keys that the finding names.",
    ),
    Code(
        "wrong-type",
        "the value is of another type",
        "TOML tells numbers, strings, booleans, arrays and tables apart, and so does the format. Nothing is converted "
        "silently.",
        '[sampling]\ntop_p = "0.95"',
        "Write the value as the type that the finding names; a number has no quotes.",
    ),
    Code(
        "out-of-range",
        "the number is too large or too small",
        "The value has the right type but lies outside of what makes sense for the key.",
        "[sampling]\ntemperature = 20",
        "Choose a value in the range that the finding names.",
    ),
    Code(
        "bad-choice",
        "the value is none of the words allowed",
        "The key takes one of a few words.",
        '[resources.db]\nopen = "app.db:open_db"\nscope = "rolout"',
        "Use one of the words that the finding lists.",
    ),
    Code(
        "bad-value",
        "the value has the right type and still makes no sense",
        "The value is a string where a string belongs, but not of the form that the key needs: an address, a name, "
        "a selection of rows.",
        '[model]\nbase_url = "localhost:8000/v1"',
        "Write the value as the finding shows.",
    ),
    Code(
        "no-effect",
        "the key changes nothing here",
        "What the file says elsewhere makes this key, or the whole table, useless. It harms no result, but it is "
        "hardly what was meant.",
        '[workflow]\nagent = "chat"\ntools = ["search"]',
        "Remove it, or change what makes it useless.",
    ),
    Code(
        "unknown-kind",
        "there is no such kind of grader",
        "`kind` chooses how a grader works, and with it which other keys the table may have. Keys of a grader "
        "whose kind is unknown are not checked.",
        '[graders.answer]\nkind = "exct"',
        "Use a kind that the finding lists; for code of your own it is `python`.",
    ),
    Code(
        "bad-duration",
        "the value is not a duration",
        "A duration is a string of numbers with units: ms, s, m, h. A bare number is refused because nobody can tell "
        "whether it means seconds or milliseconds.",
        "[limits]\ntime = 300",
        'Write the unit: "300s", "5m", "1h30m", "250ms".',
    ),
    Code(
        "bad-money",
        "the value is not an amount of money",
        "An amount is a string of a number and a currency.",
        "[limits]\ncost = 0.25",
        'Write the currency: "0.25 USD".',
    ),
    Code(
        "bad-size",
        "a size is not written as a size",
        "A size is a string of a number and a unit: B, kB, MB, GB, TB for powers of 1000, KiB, MiB, GiB, TiB for "
        "powers of 1024. A bare number is refused because nobody can see what it counts.",
        "[serve]\nmax_body = 64",
        'Write a unit: max_body = "64MiB".',
    ),
    Code(
        "secret-in-file",
        "a secret stands in the file",
        "A key or token written into a workflow ends in version control, logs and records.",
        '[model]\napi_key = "sk-..."',
        'Keep it in the environment and name the variable: api_key = { env = "OPENAI_API_KEY" }. A secret that was '
        "committed should be revoked.",
    ),
    Code(
        "schema-version",
        "the file is of another version of the format",
        "`schema` says which version of the format the file is written in; this program reads some versions only.",
        "schema = 2",
        "Use a program that reads the version, or write the file in a version that the finding names.",
    ),
    Code(
        "extends-missing",
        "a file named in `extends` is not there",
        "`extends` names files that are merged under this one, looked up from this file's folder.",
        'extends = ["../bse.toml"]',
        "Correct the path.",
    ),
    Code(
        "extends-cycle",
        "files extend each other in a circle",
        "A file that `extends` another may not be extended by it, directly or through others.",
        'extends = ["b.toml"]        # and b.toml: extends = ["a.toml"]',
        "Move what both need to a third file and extend that.",
    ),
    Code(
        "bad-override",
        "an override is not understood",
        "`--set` wants KEY=VALUE with a key of the file's format and a TOML value; a profile wants dotted keys.",
        "osmosis-run eval data.jsonl --set sampling.temperature:0.5",
        "Write --set sampling.temperature=0.5; a value with spaces needs the shell's quotes around it.",
    ),
    Code(
        "unknown-profile",
        "there is no such profile",
        "`--profile` names a table under [profiles].",
        "osmosis-run eval data.jsonl --profile cl",
        "Use a profile that the finding lists, or add [profiles.NAME].",
    ),
    Code(
        "unknown-axis",
        "a matrix axis is not a key of the format",
        "Each axis under [matrix] is a dotted key that is set to each of its values in turn.",
        '[matrix]\naxes = { "sampling.temprature" = [0.0, 1.0] }',
        "Correct the dotted key.",
    ),
    Code(
        "bad-variable",
        "a variable of the first generation has a value that cannot be",
        "`OSMOSIS_ROLLOUT_*` variables set keys of [serve]. Each has the range that the SDK documents.",
        "# in the environment\nOSMOSIS_ROLLOUT_SERVER_MAX_CONCURRENT_ROLLOUTS=0",
        "Correct the variable, or unset it and set the key in the file: `osmosis-run explain serve` lists them.",
    ),
    Code(
        "unknown-setting",
        "a variable looks like a setting, and is none",
        "The name begins like the SDK's settings (OSMOSIS_ROLLOUT_CLIENT_, _SERVER_, _LOG_, _TRACE_, _METRICS_), so "
        "somebody expects it to do something, and it does nothing.",
        "# in the environment\nOSMOSIS_ROLLOUT_SERVER_MAX_CONCURENT_ROLLOUTS=64",
        "Correct the name, or unset the variable.",
    ),
    Code(
        "dotenv-syntax",
        "a line of the `.env` file is no entry",
        "The `.env` file beside the workflow file may hold OSMOSIS_ROLLOUT_ variables, one a line: NAME=value, with "
        "quotes where the value has spaces at its ends, quotes or ` #`. A line that cannot be read may be a setting "
        "less: an error where such a name stands on it, else a warning.",
        "# in .env\nOSMOSIS_ROLLOUT_LOG_LEVEL info",
        "Write NAME=value; put a value in single quotes to keep it as it is.",
    ),
)
