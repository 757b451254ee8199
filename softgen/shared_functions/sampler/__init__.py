"""The sampler: texels by coordinates, filtered as a sampler state says.

In:  a message (descriptor, payload registers, channel mask), surface states and sampler states.
Out: red, green, blue and alpha in the response registers.

unit.py      UNIT: the declaration
environment.py  what lane programs of messages need
interpreter.py  their environment on the interpreter; compiled.py the one in compiled code
state.py     Sampling: a sampler state understood; Samplers: the table of a dispatch
address.py   coordinates become texels: normalised or not, what lies outside
lod.py       level of detail, and the levels that follow from it
cube.py      faces of cube maps
anisotropy.py  several samples for a pixel
chroma_key.py  texels that match a key: replaced by black, or their pixels killed
comparison.py  texels compared with a reference
reduction.py  minimum and maximum in place of a filter
request.py   what messages ask for; channels.py what channel selects make of texels
filters.py   which texels count how much: nearest, linear, levels
operations.py  operations on texels, for the interpreter and for compiled functions
payloads.py  parameters of messages, by generation and width
messages.py  payloads and answers; unorm.py those of blocks of pixels
"""

from softgen.shared_functions.sampler.interpreter import SamplerPort
from softgen.shared_functions.sampler.state import Samplers, Sampling

__all__ = ["SamplerPort", "Samplers", "Sampling"]
