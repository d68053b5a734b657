"""The loop of `reconciler gitops run`: a branch is planned and applied, and drift is told in between."""
