"""What the detectors say of windows of real agents' trajectories, beside what readers say."""
