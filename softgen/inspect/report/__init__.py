"""What a run did.

report.py        the end-of-run report: how exactly, and which kernels took the time; kernel_names.py  names kernels from OpenCL binaries,
                 of a recording those that recorded_programs.py finds
software_rules.py the manual's rule for software that a remark is about
pictures.py      render targets as image files, sample_pictures.py those of several samples,
                 video_pictures.py decoded pictures; frames.py  what the display presents
recording.py     what `run` records: a whole run, or a submission that failed, as a capture
"""
