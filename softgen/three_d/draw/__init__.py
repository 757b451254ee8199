"""A draw: its stages in order, and what is kept from draw to draw.

draw.py             a draw that is not prepared, stage by stage; draw_names.py names of a draw and its pixels
draw_plans.py       the plans of a draw, kept from draw to draw
prepared.py         the plans of all stages for one state
prepared_front.py   its stages up to the vertex shader; prepared_threads.py its CLIP and SF threads on Gen4.5 (draw_threads.c);
                    shared_stages.py its stages on several host threads (draw_loops.c)
prepared_draws.py   the prepared draws of a context, which draw.c finds and runs; draw_state.c and draw_pointers.c compare; their
                    structures are in draw.h, draw_structures.py
"""
