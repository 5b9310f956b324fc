"""Light modules that replace `bedrock-agentcore` (as in release 1.25.0), for code-based evaluators only."""

__pin__ = "bedrock-agentcore==1.25.0"
__version__ = "1.25.0"
