"""The unified return buffer (URB): messages of geometry threads that read and write its entries.

memory.py  the bytes behind it
"""
