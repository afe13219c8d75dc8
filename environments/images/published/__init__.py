"""Images that publishers of tasks name: how one becomes the image of a stage, and how tests run in it."""
