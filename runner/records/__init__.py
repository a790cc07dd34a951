"""The nouns of a rollout, frozen. This floor does no I/O and imports nothing but the standard library."""
