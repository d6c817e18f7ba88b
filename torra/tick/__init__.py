"""The parts of run_tick: who is asked, what it may cost, what is recorded."""
