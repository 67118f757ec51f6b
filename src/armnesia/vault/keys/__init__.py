"""Keys, and what is made with them: keyed digests, signatures; canonical JSON; files of their owner only."""
