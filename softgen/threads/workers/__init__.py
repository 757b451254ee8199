"""Workers: dispatches on compiled engines, shared among host threads.

worker.py      one host thread's share
late_fields.py fields of payloads that are filled in after their writer
answers.py     what Python did for one thread, as C repeats it for others
shared.py      the part of a dispatch that its workers share: kernel, engine, bindings
groups.py      groups shared among host threads, which helpers.c keeps
group_cache.py group runs kept for later dispatches, by kind and surfaces
strips.py      threads of neighbouring groups in turn, where each has rows of an image to itself
worker_count.py how many host threads a dispatch gets: one, or all that it may have
pool.py        C loops of pipelines, each on a host thread of its own
kept_loop.py   the worker of a C loop, kept while its record lasts
affine.py      affine lane values in payloads
"""
