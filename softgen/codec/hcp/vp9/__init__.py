"""VP9: pictures to surfaces, probabilities back to the driver."""
