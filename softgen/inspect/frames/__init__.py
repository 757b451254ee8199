"""Presented frames for people: saved, filmed, and shown live in a browser.

In: what the display shows, at each frame it presents. Out: PNG files and films, which another process writes, so that the program that
presents does not wait for compression; and a page of the running program that sends keys and pointer motion back.

`options.py` has the options; `scanout.py` copies what planes scan out by the compiled detiler and composes frames; `slots.py` is memory
that both processes have; `sink.py` chooses frames in the simulator's process and `writer.py` writes them in another;
`show.py` and `live.py` likewise for the page of a running program, `typed.py` what people
do there.
"""
