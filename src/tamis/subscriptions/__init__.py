"""Who is subscribed to what.

In: ids and filters, one by one or in bulk. Out: handles, numbers that engines hold filters under,
and for each handle its id and its filter again.
"""
