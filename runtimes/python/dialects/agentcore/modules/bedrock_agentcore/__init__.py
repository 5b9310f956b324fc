"""Light modules in place of the package `bedrock-agentcore`, checked against 1.25.0: code-based evaluators."""

__pin__ = "bedrock-agentcore==1.25.0"
__version__ = "1.25.0"
