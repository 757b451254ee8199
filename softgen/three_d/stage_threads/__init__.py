"""Stages of Gen4.5 whose work EU threads do.

stage_threads.py, .c, .h  what they have in common
geometry_threads.py, .c   GS threads
clip_threads.py, .c       CLIP threads
setup_threads.py, .c      SF threads
thread_output.py, .c      the objects of what GS and CLIP threads put out
"""
