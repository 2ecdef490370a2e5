"""`make bench-peers`: what two well-known libraries take for the like, on the same server and in
turn with ours. They live in an environment of their own; each is asked over its own pipe."""
