"""Erasers: they delete rows of people where a log has its rows. Each is made by `Source.eraser`."""
