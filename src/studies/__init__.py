"""The evidence: a folder a chapter, with proofs, studies, and code shared with the page.

``CHAPTER/proofs.py`` holds what the page claims (`studies.findings`). ``CHAPTER/shown.py``
holds code that the page shows and that studies use; a test compares the two. Any other
module of a chapter's folder that has a ``plan`` is a study:

- its docstring says the question, what varies, the rivals, the null and the statistic;
- ``CHAPTER`` is the page that shows it;
- ``CLAIM``, ``RIVAL``, ``NULL`` and ``SETTINGS`` are stored as they are: what the study
  claims, what else could explain it, what would be so if there were nothing to find, and
  what all runs have in common;
- ``plan(small)`` returns the list of settings, a dict for each run: its ``group`` and the
  other arguments of `run`. With ``small`` it returns a few short runs;
- ``run(folder, group, **setting)`` makes one run and returns its outcome: a dict, a list of
  dicts, or None. The same setting gives the same outcome. Weights are saved in ``folder``;
- ``summary(results)`` is given the outcomes of all runs by group, and returns ``n``,
  ``seeds``, ``interval`` and ``verdict`` (`studies.harness` says more of all these);
- ``CHECKPOINTS`` names the weights that it makes for the course, and ``AFTER`` the weights
  of other studies that have to be made before, where there are any.

A study that only makes weights has no claim; what they rest on is stored beside them, as
``data/checkpoints/NAME.json``. Nothing else writes to ``data``, beyond the
corpora. What results depend on is recorded (`studies.depends`).
"""
