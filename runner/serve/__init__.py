"""The HTTP face: requests of a training cluster in, callbacks out. Nothing else knows the wire."""
