"""The paper, table by table and figure by figure: `foretest paper`."""

from foretest.paper.study import PaperStudy, run_paper

__all__ = ["PaperStudy", "run_paper"]
