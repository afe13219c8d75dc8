"""What bash commands say: their words, the files that they show and write, the programs and tests that they run."""
