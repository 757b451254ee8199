"""The native scheduler: threads in turns on one host thread, without Python.

scheduler.py   scheduler.c for Python; scheduler.h its structures
scheduler.c    groups of threads in turns; threads.h lets C loops of pipelines start batches
answers.c      what Python did for one thread, done again for others
start.c        payloads and blocks of threads that start; templates.py the blocks they start from, block_ranges.py what of a block is
               written again
helpers.c      host threads that help with a dispatch
tables.py, tables.c (tables.h)  surface states that a binding table leads to
"""
