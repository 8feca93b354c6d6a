"""The organisms: small language models trained from scratch on the atlas, so that what they were
taught is known."""
