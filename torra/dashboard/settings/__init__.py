"""The pages of profiles: form, trial run, handing over to a running desk."""
