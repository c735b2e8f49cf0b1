"""How sure: what the noise may have done, intervals for people at large, and which model is better."""
