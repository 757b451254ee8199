"""Bulk thread dispatch: runs the EU threads that pipelines ask for.

In:  a ThreadDispatch (program, cr0, payloads, masks, bindings, scratch, barrier and local memory) and its DispatchContext.
Out: memory changed; counts of threads and instructions.

dispatch.py    the record that every pipeline fills in; dispatcher_protocol.py: what runs it
payload.py     payload sources, dispatch-mask sources, header patches
dispatcher.py  chooses the engine of a dispatch; statistics.py counts what each kernel did
interpreted.py the reference engine behind the scheduler, for C loops
reference.py   the reference engine: one thread group on the interpreter
scheduler.py   structures of scheduler.c and start.c, the native scheduler; threads.h is its C interface
groups.py      compiled engines: groups shared among host threads, which helpers.c keeps
group_cache.py group runs kept for later dispatches, by kind and surfaces; tables.py reads the surface states that a table leads to
strips.py      threads of neighbouring groups in turn, where each has rows of an image to itself
staffing.py    how many host threads a dispatch gets: one, or all that it may have
pool.py        C loops of pipelines, each on a host thread of its own
kept_loop.py   the worker of a C loop, kept while its record lasts
programs.py    kernels and the system routine in memory
bindings.py    surface entries for compiled code, kept between dispatches
scheduler.c    groups of threads in turns on one host thread; threads.h lets C loops of pipelines start batches
shared.py      the part of a dispatch that its workers share: kernel, engine, bindings
worker.py      one host thread's share; templates.py the blocks its threads start from; block_ranges.py what of a block is written again
affine.py      affine lane values in payloads
places.py      error messages that all engines use
compare.py     two engines on the same dispatch, and the first difference between them; compare_work.py: on the same draw
selection.py   the tiles of a draw that engines are compared on
snapshot.py    memory before a comparison, and what two engines made of it
"""
