"""Traces: readers of recorded GPU work, writers of two formats, replay, and the TBX server.

In    a capture directory (`exec-NNNNNN.json` and `bo/<hash>.zst`), an AUB file (classic or memory trace),
      an i915 error state, a hang dump of Mesa, a raw batch.
Out   a `Trace`: the device, and in the order they were recorded `Work` (an engine, address spaces, where to start) and
      `Expectation` (what memory or a register must hold at that moment). Also the way back: capture directories and AUB files.

work.py           Work, Expectation and Trace: the interface that every reader implements
file.py           open_trace: detects the kind of a file by its content
capture.py        capture directories; capture_json.py checks their JSON, capture_write.py makes them
aub.py            AUB files: records (aub_records.py) change memory (aub_memory.py) until a submission starts work
aub_write.py      memory trace AUB files
error_state.py    i915 error states: error_text.py reads their lines, error_data.py unfolds the memory in them
hang_dump.py      Mesa's hang dumps (.dmp)
raw.py            raw batches
replay.py         executes a trace and checks its expectations
tbx.py            server of the TBX protocol for Intel's OpenCL runtime
tables.py         the tables of spec/trace

Input may be any bytes. Malformed input raises a DecodeError that names file, place and cause; harmless oddities go to `Trace.notes`.
"""
