"""The MPEG-2 variable length decoder of the front end: a slice becomes a root thread for each macroblock (G45 8790-9050).

decoder.py  MEDIA_OBJECT in VLD mode: slices decoded by C code
threads.py  dispatches of macroblock threads
vld.h       slices and what C code makes of them: slice.c (macroblocks and blocks), motion.c (vectors), record.c (R1), writer.c (payloads)
"""
