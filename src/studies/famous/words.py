"""Words that SmolLM2 is asked about, and how: written down before any model read them."""

# --- grammar -----------------------------------------------------------------------------

_NOUNS = (  # the plural ends in s
    "key cabinet letter garden river window teacher farmer doctor pilot author singer "
    "neighbour driver painter worker lawyer guest friend cousin student player sailor "
    "tailor baker hunter manager guard soldier visitor bird horse dog cat cow goat duck "
    "tree flower rose apple lemon table chair lamp clock book picture mirror door car "
    "boat train ship wagon bridge tower house school shop"
)
NOUNS = _NOUNS.split()
# Between the subject and the other noun; "near" was asked first, alone.
PREPOSITIONS = [
    "near",
    "of",
    "behind",
    "with",
    "by",
    "beside",
    "above",
    "under",
    "from",
    "for",
]

# --- examples ----------------------------------------------------------------------------

_ANIMALS = (
    "lion horse cow dog cat sheep goat wolf fox bear tiger mouse rabbit monkey elephant "
    "camel eagle owl snake frog whale shark bee spider"
)
_PLANTS = (
    "oak rose tulip daisy lily fern moss pine maple willow clover ivy wheat barley rice "
    "corn cactus bamboo orchid poppy nettle palm birch thistle"
)
_VERBS = (
    "run sing eat sleep walk write read think speak jump laugh cry swim climb build draw "
    "teach learn carry throw catch bring send sell"
)
_THINGS_AT_HOME = (
    "table house chair window door river mountain garden bottle spoon bread paper letter "
    "road bridge city school church ship train shirt shoe clock lamp"
)
_FOOD = (
    "bread cheese apple rice soup cake butter pasta meat honey egg potato carrot onion "
    "banana grape salad pie pizza sugar milk bean tomato sausage"
)
_TOOLS = (
    "hammer saw drill wrench shovel axe knife rake chisel pliers screwdriver ladder broom "
    "needle scissors spade file crowbar clamp brush hoe mallet sander vise"
)
_COUNTRIES = (
    "France Spain Italy Japan China India Brazil Egypt Mexico Canada Peru Chile Kenya "
    "Norway Sweden Finland Poland Greece Turkey Iran Cuba Ireland Germany Austria"
)
_CITIES = (
    "Paris Madrid Rome Tokyo London Berlin Moscow Vienna Chicago Boston Sydney Athens "
    "Oslo Dublin Prague Warsaw Cairo Lima Seoul Delhi Milan Lisbon Toronto Seattle"
)
_GOOD = (
    "happy kind brave honest lovely wonderful gentle bright clever joyful friendly "
    "generous beautiful pleasant excellent perfect sweet loyal wise great cheerful "
    "delightful superb fair"
)
_BAD = (
    "sad cruel evil angry awful terrible nasty ugly rude selfish lazy greedy horrible "
    "painful poor dreadful bitter false stupid weak gloomy disgusting vile wicked"
)
_BODY = (
    "hand foot arm leg head nose ear eye mouth finger knee elbow neck shoulder back chest "
    "toe thumb chin heel wrist hip lip tongue"
)
_CLOTHES = (
    "shirt coat hat shoe sock glove dress skirt scarf belt jacket trousers boot sweater "
    "vest blouse tie cap robe jeans pajamas apron sandal suit"
)
TASKS = [  # of each: two labels, and 24 words with each
    {"animal": _ANIMALS, "plant": _PLANTS},
    {"verb": _VERBS, "noun": _THINGS_AT_HOME},
    {"food": _FOOD, "tool": _TOOLS},
    {"country": _COUNTRIES, "city": _CITIES},
    {"good": _GOOD, "bad": _BAD},
    {"body": _BODY, "clothes": _CLOTHES},
]
TASKS = [{label: words.split() for label, words in task.items()} for task in TASKS]

# --- lists -------------------------------------------------------------------------------

_THINGS = (
    "drum ring lamp coin book rope ball cake flag boat clock knife plate shirt watch chair "
    "piano apple candle bottle mirror basket hammer ladder"
)
THINGS = _THINGS.split()
# A line about a name and a thing, the question, and how many lines; the first was asked
# first, alone.
LISTS = [
    ("{} has the {}.", "\nWhat does {0} have? {0} has the", 24),
    ("{} has the {}.", "\n{} has the", 24),
    ("{}: {}", "\n{}:", 24),
    ("{} bought a new {} at the market.", "\n{} bought a new", 24),
    ("{} has the {}.", "\n{} has the", 12),
    ("{} has the {}.", "\n{} has the", 6),
]
