"""`python -m tests.logs.conformance` prints the conformance table."""

from tests.logs.conformance.table import printed

if __name__ == "__main__":
    print(printed())
