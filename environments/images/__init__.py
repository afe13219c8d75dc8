"""Images: what a tree declares to need, the recipe that installs it, and the image that holds it."""
