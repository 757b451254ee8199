"""Faults of compiled messages; see shared_functions/access_fault.py."""

from softgen.shared_functions.access_fault import explain

__all__ = ["explain"]
