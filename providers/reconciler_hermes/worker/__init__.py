"""What runs under Hermes's interpreter: the standard library and Hermes only; its sources are sent on stdin."""
