"""Tessellation: from patches to the points of their domains and the objects between them.

tessellator.py, .c  TE: the factors of a patch; tessellator_points.c its points, tessellator_triangles.c connectivity
"""
