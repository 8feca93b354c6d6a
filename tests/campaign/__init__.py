"""The survival campaign: what befalls runs in the world, done to them on purpose, and whether their numbers survive it."""
