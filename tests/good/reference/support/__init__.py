"""The code that the reference file names."""
