"""The media pipeline, and the front end that media and compute share.

In:  MEDIA_* commands.
Out: the front end's state (VFE state, CURBE, interface descriptors); thread dispatches of root threads.

commands.py   the commands' handlers
front_end.py  the front end's state, and what of it a dispatch needs
objects.py    MEDIA_OBJECT commands -> ThreadDispatch records
object_actor.py  objects and flushes between them in a walk over a batch, object_actor.c (object_actor.h): one dispatch
children.py   objects whose threads may spawn others, or wait for one another, from Gen7 on
trees.py      threads that run in turns, and spawn others
queued.py     a root thread that waits
walk.py       the order in which MEDIA_OBJECT_WALKER dispatches threads
vfe/          the front end and thread spawner of Gen4.5, whose state is in memory
checks.py     rules of the manual that these commands may break
"""

from softgen.media.commands import ACTORS, COMMANDS, PREPARED, finish, new_state

__all__ = ["ACTORS", "COMMANDS", "PREPARED", "finish", "new_state"]
