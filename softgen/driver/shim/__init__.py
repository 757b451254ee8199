"""The library preloaded into the program, in C.

shim.c         calls that it takes the place of; shim.h what its files share
shim_channel.c messages to the server; shim_memory.c the program's memory; shim_paths.c paths under /dev/dri and /sys;
shim_input.c   a keyboard and a pointer, where a run has them
"""
