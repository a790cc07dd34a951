"""What the model may call: schemas, validation, execution. `tool.py` holds the protocol."""
