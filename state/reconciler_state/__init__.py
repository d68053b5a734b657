"""What was applied last, and the id each harness gave it. Holds no secret value (L5)."""
