"""Light modules that replace the package `bedrock-agentcore` (compared with 1.25.0): only code-based evaluators."""

__pin__ = "bedrock-agentcore==1.25.0"
__version__ = "1.25.0"
