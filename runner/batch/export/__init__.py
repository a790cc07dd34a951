"""Training rows from scored rollouts: one file per format, each a pure function of a record."""
