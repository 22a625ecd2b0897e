"""The small GPT that readers train in their browser: how large it is, and how it trains."""

# Below a bigram model in half a minute, in plain JavaScript on one core of a laptop.
SIZES = {"context": 32, "layers": 2, "heads": 4, "d_model": 32, "d_ff": 128}
SETTINGS = {"batch": 4, "steps": 1500, "learning_rate": 0.004, "seed": 1}
