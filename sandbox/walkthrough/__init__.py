"""`make walkthrough`: the main job and its mishaps, driven from outside an isolated house."""
