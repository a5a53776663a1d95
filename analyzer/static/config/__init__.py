"""Configuration of one launch: the command, the environment, the model and the device, evaluated against the checkout."""
