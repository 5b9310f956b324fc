"""Runs NeMo Evaluator metrics in this process, in sandboxes, or on a host; imported as `evaluator_host.sdk`."""
