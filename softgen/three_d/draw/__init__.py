"""A draw: its stages in order, and what is kept from draw to draw.

draw.py             Pipeline3D: the draws of a context
stage.py            what a stage is; draw_plans.py the plans of a draw, draw_names.py names of it and of its pixels
draw_record.py      DrawRecord: what state means to all stages of a draw, as an array that draw.c walks
draw_walk.py        the draw under way (draw_loops.c: stages on several host threads); draw.h, draw_structures.py structures
draw_actor.py       draws in a walk over a batch, without Python for each (draw_actor.c, draw_actor.h)
draw_cache.py       records kept from draw to draw, which draw.c finds
record_keeper.py    what a record depends on (draw_state.c compares it, draw_pointers.c what pointers lead to); stage_tables.py binding
                    tables; stage_loops.py loops that records share; surface_moves.py records that are made fit for other surfaces
"""
