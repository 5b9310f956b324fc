"""MLflow's scorers (dialect `mlflow`)."""
