"""`make sabotage`: break one promise at a time and see which check turns red."""
