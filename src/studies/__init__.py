"""The evidence, one module a study: nothing else writes ``data`` beyond the corpora.

A study is a module with

- a docstring: the question, what varies, the rivals, the null, the statistic;
- ``CHAPTER``, which shows it, and with whose code it may run (`studies.chapter.page`);
- ``CLAIM``, ``RIVAL``, ``NULL`` and ``SETTINGS``, which are stored as they are;
- ``plan(small)``: a dict for each run, its ``group`` and what `run` is given;
- ``run(folder, group, **setting)``: what is stored of a run (a dict; a list of such; or
  None), the same again for the same setting. Weights go to ``folder``;
- ``summary(results)``: ``n``, ``seeds``, ``interval`` and ``verdict`` of what was found,
  group → list;
- ``CHECKPOINTS``, the weights that the course comes with, and ``READS``, those that it
  begins from, where there are any.

One that only makes weights has no claim.
"""
