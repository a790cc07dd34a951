"""What scores a sample: `grader.py` holds the protocol, then one file per kind, then how scores make one reward."""
