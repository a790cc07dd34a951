"""`osmosis-run debug`: a rollout, step by step, at the terminal."""
