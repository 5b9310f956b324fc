"""Rewrites legacy evaluators to the new signature. Proves, with rows in sandboxes, that they score the same.

Legacy means `evaluate(app_params, inputs, output, correct_answer)`: Agenta's older signature, contract `evaluate-v1`.
"""
