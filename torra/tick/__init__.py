"""What run_tick is made of: who is asked, what it may cost, what is recorded."""
