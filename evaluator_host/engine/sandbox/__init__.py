"""Sandboxes: each is an isolated process tree with a runner in it. All backends have the same interface."""
