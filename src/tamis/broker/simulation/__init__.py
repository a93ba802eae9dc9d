"""What a broker runs on when its failures are simulated."""
