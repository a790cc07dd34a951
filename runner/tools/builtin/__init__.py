"""Tools that come with the runner: `[tools.x] builtin = "…"`. One file each; none reads the config."""
