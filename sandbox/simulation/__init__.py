"""`make simulate`: a month of a house with members, with everything that goes wrong in one."""
