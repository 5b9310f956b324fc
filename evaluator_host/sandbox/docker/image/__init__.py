"""The runtime image of the Docker backend: how it is made, and files in and out of images."""
