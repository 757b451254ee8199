"""VDENC: decides the macroblocks of H.264 slices, which PAK encodes."""
