"""`agent = "coding"`: work on a repository in a sandbox, with a patch as its result."""
