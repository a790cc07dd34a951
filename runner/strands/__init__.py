"""Strands agents in a rollout: the only room that imports strands, and only at the moment of use."""
