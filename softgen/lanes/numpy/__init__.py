"""The reference machine: NumPy arrays, at once.

machine.py     NumpyMachine
memory.py      its loads, stores and atomics; region.py graphics memory
exact.py       correctly rounded arithmetic on Python integers
"""
