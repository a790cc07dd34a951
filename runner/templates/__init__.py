"""Jinja2 in a sandbox, strict. The only room that imports jinja2."""
