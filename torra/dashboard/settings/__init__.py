"""The pages of profiles: the form, trial runs, the handover to a running desk."""
