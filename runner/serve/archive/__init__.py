"""A folder for each rollout: its trajectory, the facts about it, the files that its code left."""
