"""Sandboxes: where tools and graders run what a model wrote. The parts stand on this floor."""
