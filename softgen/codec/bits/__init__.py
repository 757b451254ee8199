"""Bits and codes of streams, for C code alone."""
