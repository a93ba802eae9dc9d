"""Networks of brokers in one process and in virtual time, with faults; `trial` is the tour."""
