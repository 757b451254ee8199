"""Macroblocks from coefficient units: IS, AVC-IT, AVC-MC and VC1-IT modes (G45 8776-8786, 9042-9066, 9931-11093).

structures.py  the structures of blocks.h, and calls of its C code
scan.py        IS mode: inverse scan
avc.py         AVC-IT mode, which transforms residuals, and AVC-MC mode, which only arranges them
vc1.py         VC1-IT mode: transforms, and overlap smoothing of vertical edges
blocks.h       units.c (coefficients and inverse scan), avc.c, vc1.c
"""
