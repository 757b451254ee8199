"""Geometry shaders since Gen7."""
