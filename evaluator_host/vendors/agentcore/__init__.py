"""Amazon Bedrock AgentCore's code-based evaluators (dialect `agentcore`)."""
