"""The resources of a host: one folder for each kind of object that it stores."""
