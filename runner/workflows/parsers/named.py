"""The formats by name. Each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from runner.workflows.parsers.parser import Parser

PARSERS = {
    "react-text": ("react_text", "ReactText"),
    "react-json": ("react_json", "ReactJson"),
    "hermes": ("hermes", "Hermes"),
    "xml-function": ("xml_function", "XmlFunction"),
}


def parser_named(name: str) -> Parser:
    """The parser of a format. Raises KeyError for a name that is none."""
    module, attribute = PARSERS[name]
    made: Parser = getattr(import_module(f"runner.workflows.parsers.{module}"), attribute)()
    return made
