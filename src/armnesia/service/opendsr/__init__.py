"""OpenDSR 2.0: requests of controllers to erase people, with statuses, callbacks and signatures."""
