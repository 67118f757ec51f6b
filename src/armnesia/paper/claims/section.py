"""The report's section on the claims of the paper."""

from armnesia.paper.claims.claims import all_claims
from armnesia.paper.claims.evidence import Evidence
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table


def claims_section(run: Run) -> Section:
    """All claims with their verdicts; they become part of the run's results."""
    evidence = Evidence(run.plan, run.evaluate)
    if not run.rows:  # otherwise the figures, computed before, have recorded the same points
        run.rows += evidence.rows
    run.claims = all_claims(evidence)
    header = ["where", "claim", "paper", "ours", "± (points)", "verdict", "why"]
    rows = [[c.where, c.text, c.paper, c.ours, c.error, c.verdict, c.why] for c in run.claims]
    text = (
        "A claim holds if the true numbers agree with the printed ones to half a point. It holds within"
        " sampling error if they agree to half a point and two standard errors. The standard error is that"
        " of the paper's own protocol (200 trajectories, 5 requests, 10 independent runs), which we repeat"
        " at the same point, combined with ours."
    )
    return Section("The paper's claims", [text], tables=[Table(header, rows)])
