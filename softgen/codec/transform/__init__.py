"""Inverse transforms, for C code alone."""
