"""The paper's figures, tables and claims as data: settings → cells → tidy rows → pictures and a report."""
