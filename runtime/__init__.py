"""Effects: processes, devices, files and the probe that runs inside serving workers."""
