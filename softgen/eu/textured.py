"""Compiled operations on texels; see shared_functions/texture."""

from softgen.shared_functions.texture.functions import Pictures

__all__ = ["Pictures"]
