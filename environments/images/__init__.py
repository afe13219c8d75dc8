"""Images: what a tree declares that it needs, the recipe that installs it, and the image that holds it."""
