"""Traces: what somebody else recorded, as work for a command streamer.

In    a capture directory (`exec-NNNNNN.json` and `bo/<hash>.zst`), an AUB file (classic or memory trace),
      an i915 error state, a hang dump of Mesa, a raw batch.
Out   a `Trace`: the device, and in the order they were recorded `Work` (an engine, address spaces, where to start) and
      `Expectation` (what memory or a register must hold at that moment). Also the way back: capture directories and AUB files.

work.py           Work, Expectation and the Trace they come from: the one interface of every reader
file.py           open_trace: which kind of file is it?
capture.py        capture directories; capture_json.py checks their JSON, capture_write.py makes them
aub.py            AUB files: records (aub_records.py) change memory (aub_memory.py) until a submission starts work
aub_write.py      memory trace AUB files
error_state.py    i915 error states: error_text.py reads their lines, error_data.py unfolds the memory in them
hang_dump.py      Mesa's hang dumps (.dmp)
raw.py            a batch on its own
replay.py         a trace executed on a GPU of softgen, its expectations checked
tbx.py            a socket: the simulator that Intel's OpenCL runtime connects to
tables.py         the tables of spec/trace

Any bytes may come in. What is wrong ends in a DecodeError that names file, place and cause; what is odd but harmless in `Trace.notes`.
"""
