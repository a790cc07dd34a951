"""The first generation's agent loop: its nouns, its small functions, and the adapter that hosts one in the engine."""
