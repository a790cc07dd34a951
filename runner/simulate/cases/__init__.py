"""The cases of the conformance suite, by what they are about. Each file ends with its table."""
