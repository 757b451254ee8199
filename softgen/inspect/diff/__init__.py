"""Differences of captures and pictures.

In    two captures, or two pictures.
Out   what differs: commands, fields, structures, kernels, pixels; as records for JSON and lines for people.

captures.py   commands of two captures aligned, with their state and kernels
pictures.py   two pictures compared pixel by pixel, and render targets of aligned draws
"""
