"""What a figure or an interactive view is made with.

A view is data first: each function here checks its input, rounds it and returns a `View`
whose MIME bundle carries a JSON description (drawn on the site by `lmbook`) and HTML (for
Jupyter and Colab). circuitsvis, bertviz and plotly draw what they draw well; what runs in
the page is our own.

- `style`, `PALETTE`, `SEQUENTIAL`, `DIVERGING`: the look of matplotlib and seaborn;
  `AT_ONCE`: how a slider of plotly changes to another frame.
- `error_bars`, `band`: intervals in a figure of matplotlib.
- `plot`: a plotly figure.
- `attention_heads`, `tokens`: circuitsvis.
- `head_view`, `model_view`: bertviz.
- `sentences`: many sentences to choose from, in one head after the other.
- `poems`: the poems nearest to a poem, and the section in which a model would put it.
- `samples`: texts of which a reader chooses one; `looks`: how far back heads attend;
  `anatomy`: a word's vector on its way up; `switches`: shares, setting by setting;
  `apart`: what one token attends to in one head, and why.
- `View`: what a chapter makes itself, for a module of the site.
- `training`: a small GPT that learns on the reader's device; `own_text`: the same with a
  text of the reader's, beside n-grams; `own_poems`: many texts of the reader's, read by a
  BERT level by level.
- `tokenizer`: a line as four tokenizers cut it; `attention_toy`: attention in the plane;
  `block`: a block's parts switched off; `neurons`: two lists to guess from;
  `generator`: a GPT that goes on with a line;
  `bert_explorer`: a BERT's heads on a line; `sequence`: what follows it, counted or read.
- `film`: a training to move through, what the model does with a line at each stop.
- `superposition`: five features in two dimensions, which a toy learns to keep.
- `talker`: a model that answers, to talk to and to look into.
- `whole`: whole models in one picture.
- `shannon`: a line to guess letter by letter, beside models.
- `choices`: pairs of lines to choose from, and a model that learns the choices.
- `neighbours`: the words nearest to a word in three tables (`spaces`).
"""

from lmcourse.views.anatomy import anatomy, switches
from lmcourse.views.apart import apart
from lmcourse.views.attention import (
    attention_heads,
    head_view,
    model_view,
    sentences,
    tokens,
)
from lmcourse.views.block import block
from lmcourse.views.choice import looks, samples
from lmcourse.views.choices import choices
from lmcourse.views.explorer import bert_explorer
from lmcourse.views.film import film
from lmcourse.views.generator import generator
from lmcourse.views.neighbours import neighbours, spaces
from lmcourse.views.neurons import neurons
from lmcourse.views.own_poems import own_poems
from lmcourse.views.own_text import own_text
from lmcourse.views.plots import (
    AT_ONCE,
    DIVERGING,
    PALETTE,
    SEQUENTIAL,
    band,
    error_bars,
    plot,
    style,
)
from lmcourse.views.poems import poems
from lmcourse.views.sequence import sequence
from lmcourse.views.shannon import shannon
from lmcourse.views.superposition import superposition
from lmcourse.views.talker import talker
from lmcourse.views.tokenizer import tokenizer
from lmcourse.views.toy import attention_toy
from lmcourse.views.training import training
from lmcourse.views.view import MIME, View
from lmcourse.views.whole import whole
