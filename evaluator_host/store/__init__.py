"""What a host keeps: workspaces, keys, records. Only this package speaks SQL; rows leave it as frozen dataclasses."""
