"""The cache of compiled objects, as it is called from here: softgen/cache.py."""

from softgen.cache import Cache, checksum, default_folder

__all__ = ["Cache", "checksum", "default_folder"]
