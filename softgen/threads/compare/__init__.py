"""Comparison: two engines on the same work, and the first difference between them.

compare.py     on the same dispatch; compare_work.py: on the same draw
selection.py   the tiles of a draw that engines are compared on
snapshot.py    memory before a comparison, and what two engines made of it
"""
