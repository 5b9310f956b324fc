"""Custom metrics of Vertex AI's Gen AI evaluation service (dialect `vertex`)."""
