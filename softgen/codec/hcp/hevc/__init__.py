"""HEVC (H.265): slices of coding tree blocks, intra and inter prediction, in-loop filters."""
