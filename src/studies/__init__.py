"""The evidence, a folder a chapter: proofs, studies, and what studies share with the page.

``CHAPTER/proofs.py`` holds what the page claims (`studies.findings`). ``CHAPTER/shown.py``
holds code that the page shows and studies use; a test compares the two. Every other module
of a chapter's folder that has a ``plan`` is a study:

- its docstring says the question, what varies, the rivals, the null, the statistic;
- ``CHAPTER`` is the page that shows it;
- ``CLAIM``, ``RIVAL``, ``NULL`` and ``SETTINGS`` are stored as they are;
- ``plan(small)`` returns a setting for each run, a dict: its ``group``, and what `run` is
  given;
- ``run(folder, group, **setting)`` returns the outcome of a run, what is stored of it: a
  dict; a list of such; or None. The same setting has the same outcome. Weights go to
  ``folder``;
- ``summary(results)`` is given group → list of outcomes, in the order of the plan, and
  returns ``n``, ``seeds``, ``interval`` and ``verdict`` of what was found;
- ``CHECKPOINTS`` names the weights that it makes for the course, and ``AFTER`` those of
  other studies that have to be made before, where there are any.

One that only makes weights has no claim. Nothing else writes ``data`` beyond the corpora.
What results rest on is recorded: `studies.depends`.
"""
