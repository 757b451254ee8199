"""Bulk thread dispatch: runs the EU threads that pipelines ask for.

In:  a ThreadDispatch (program, cr0, payloads, masks, bindings, scratch, barrier and local memory) and its DispatchContext.
Out: memory changed; counts of threads and instructions.

dispatch.py    the record that every pipeline fills in; dispatcher_protocol.py: what runs it
payload.py     payload sources, dispatch-mask sources, header patches
dispatcher.py  chooses the engine of a dispatch; statistics.py counts what each kernel did
programs.py    kernels and the system routine in memory
bindings.py    surface entries for compiled code, kept between dispatches
reference.py   the reference engine: one thread group on the interpreter; interpreted.py the same behind the scheduler, for C loops
world.py       what manuals leave open: contents of what was never written, the order of groups and threads
places.py      error messages that all engines use
native/        the native scheduler
workers/       compiled engines: work shared among host threads
compare/       two engines on the same work, and the first difference between them
"""
