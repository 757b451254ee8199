"""Tessellation: from patches to the points of their domains and the objects between them.

hull_shader.py, .c    HS: threads that make patch entries
tessellation.py, .c   TE: points and objects of patches, from their factors
tessellator.py, .c    points of one patch; tessellator_points.c where they are, tessellator_triangles.c connectivity;
                      tessellator.h their structures
domain_shader.py, .c  DS: threads that make vertices of points
patch_threads.py, patch_header.c  what threads of HS and DS have in common; tessellation.h all structures
patch_plans.py        what is kept from draw to draw
"""
