"""Video codecs."""
