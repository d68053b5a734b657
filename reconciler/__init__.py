"""The engine: observe, plan, apply. It names no harness; providers enter by entry point."""
