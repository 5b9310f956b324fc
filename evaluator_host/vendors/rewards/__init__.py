"""Reward functions of verl, TRL and verifiers (dialect `rewards`)."""
