"""The TOML files of the Osmosis SDK: read with its own rules, turned into a workflow.toml, and written from one."""
