"""The `armnesia` command: `main` runs it, and each folder holds the commands of one help panel."""
