"""Pure core: source to path map, receipts to verdicts. No process, GPU, clock or print."""
