"""Text formats of tool calls: `parser.py` holds the protocol, then one file per format."""
