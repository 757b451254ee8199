"""What a run did.

report.py        the end-of-run report: how exactly, and which kernels took the time; kernel_names.py  names kernels from OpenCL binaries
pictures.py      render targets as image files, sample_pictures.py those of several samples; frames.py  what the display presents
recording.py     what `run` records: a whole run, or a submission that failed, as a capture
"""
