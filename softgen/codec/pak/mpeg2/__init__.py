"""MPEG-2: frame pictures of macroblocks that commands have decided."""
