"""`make mutants`: small faults in the code that decides, one at a time, each seen by a test or not.

mutmut makes the mutants. It would start the tests anew for each; here two processes open the
house once (servers, stand-ins, imports) and fork for every mutant. See docs/mutation.md.
"""
