"""What one table cannot know alone: names, scores, models, limits, contents and variants checked across sections."""
