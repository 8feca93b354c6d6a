"""The scoring version stands alone, so that a store can be read without torch."""

SCORING = 9  # raised whenever a change in ``lm`` may change a number; part of every store key
