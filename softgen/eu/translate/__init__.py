"""T1: a whole kernel as one native function.

control_flow.py     control-flow graph, and where channels may wait
computed_jumps.py   where additions to a saved ip may lead
liveness.py         liveness: which registers must be saved at exits
inactive_lanes.py   inactive-lane liveness: which write masks can be dropped
affine.py           affine values (base + lane·stride) in general registers
cr0_propagation.py  cr0 constant propagation
registers.py        partition of the register file into vector variables
state.py            lane state that semantics compute on
flow.py             branches; stack_flow.py: with a mask stack
simd32_pairing.py   two halves of a SIMD32 instruction as one computation
broadcasts.py       broadcasts of scalars, hoisted above a rare branch
send.py             messages
entry_exit.py       entries, side exits and resume points
key.py              what names a translation
store.py            translations kept in the object cache
blocks.py           basic blocks as code: instructions, branches, side exits
pipelining.py       loops in two stages: software pipelining
kernel.py           puts them together
engine.py           the engine
"""
