"""The page of a capture: timeline, state, targets, pixel history, vertices, shaders with counts; served locally or written as files.

data.py      what the page shows, as JSON and PNG, by name
history.py   every write to a pixel, and every thread that shaded it
mesh.py      vertices as vertex shaders get them and leave them
server.py    its HTTP server; local_server.py: for this machine alone, also that of live frames
export.py    the same as files
page/        the page itself: HTML, a style sheet, a script; no build step, no library
"""
