"""What each guarantee level costs."""
