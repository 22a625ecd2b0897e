"""What every module has, how modules are put together, and how they are trained."""

import copy

import numpy as np


def as_tuple(x):
    """Return ``x`` if it is a tuple, else the tuple that holds only ``x``."""
    return x if isinstance(x, tuple) else (x,)


def shapes_of(x):
    """Return the shape of an array, or a tuple of shapes for a tuple of arrays."""
    return tuple(map(shapes_of, x)) if isinstance(x, tuple) else np.shape(x)


class Parameter:
    """An array that is trained, and the gradient collected for it.

    Two modules that hold the same Parameter are linked: there is one array, and both add
    to one gradient.

    Parameters
    ----------
    value : array-like
        Copied, as float64.
    trainable : bool
        False for a constant; optimisers leave it alone.
    """

    def __init__(self, value, trainable=True):
        self.value = np.array(value, dtype=np.float64)
        self.grad = np.zeros_like(self.value)
        self.trainable = trainable


class Module:
    """A function with a forward and a backward pass.

    Callers use `forward` and `backward`, which check shapes. A subclass writes
    ``compute(*inputs)``, which returns the output (an array, or a tuple of arrays) and
    keeps what the way back needs; ``gradient(delta)``, which is given the gradient of the
    output, adds to those of the parameters and returns that of the input (a tuple for
    several inputs); and `fits`.
    """

    shapes = None  # of the last output

    def fits(self, *shapes):
        """Tell whether inputs of these shapes can be computed."""
        return True

    def forward(self, *inputs):
        """Return the output for these inputs.

        Raises
        ------
        ValueError
            If the shapes do not fit; names the module and the shapes.
        """
        shapes = tuple(map(shapes_of, inputs))
        try:
            fits = self.fits(*shapes)
        except (TypeError, IndexError):  # too many or too few inputs or axes
            fits = False
        if not fits:
            given = " and ".join(map(str, shapes)) or "nothing"
            raise ValueError(f"{self}: an input of shape {given} does not fit")
        output = self.compute(*inputs)
        self.shapes = shapes_of(output)
        return output

    __call__ = forward

    def backward(self, delta):
        """Take the gradient of a loss by the output; return that by the input.

        The gradients of the parameters are added to what they hold already. They belong
        to the same loss as ``delta``.

        Raises
        ------
        RuntimeError
            If there was no forward pass.
        ValueError
            If ``delta`` does not have the shape of the output.
        """
        if self.shapes is None:
            raise RuntimeError(f"{self}: backward before forward")
        if shapes_of(delta) != self.shapes:
            raise ValueError(
                f"{self}: delta has shape {shapes_of(delta)}, the output {self.shapes}"
            )
        return self.gradient(delta)

    def parts(self):
        """Yield (name, Parameter or Module) for everything that this module holds."""
        for name, part in vars(self).items():
            many = isinstance(part, (list, tuple))
            for i, each in enumerate(part if many else [part]):
                if isinstance(each, (Parameter, Module)):
                    yield (f"{name}.{i}" if many else name), each

    def parameters(self):
        """Return all parameters, name → Parameter, a linked one once."""
        found = {}
        for name, part in self.parts():
            inner = {"": part} if isinstance(part, Parameter) else part.parameters()
            for end, parameter in inner.items():
                if not any(parameter is other for other in found.values()):
                    found[f"{name}.{end}".rstrip(".")] = parameter
        return found

    def __repr__(self):
        held = [(n, p.value.shape) for n, p in self.parts() if isinstance(p, Parameter)]
        inside = ", ".join(f"{name} {shape}" for name, shape in held)
        return type(self).__name__ + (f"({inside})" if held else "")


class Identity(Module):
    """Hand the input on."""

    def compute(self, x):
        return x

    def gradient(self, delta):
        return delta


class Chain(Module):
    """One module after the other.

    A tuple that one returns becomes the inputs of the next.

    Parameters
    ----------
    *modules : Module
    """

    def __init__(self, *modules):
        self.modules = modules

    def compute(self, *inputs):
        for module in self.modules:
            inputs = as_tuple(module.forward(*inputs))
        return inputs if len(inputs) > 1 else inputs[0]

    def gradient(self, delta):
        for module in reversed(self.modules):
            delta = module.backward(delta)
        return delta


class Fork(Module):
    """Give the same input, or inputs, to several modules; return all their outputs.

    What is used several times collects the sum of the gradients.

    Parameters
    ----------
    *branches : Module
    """

    def __init__(self, *branches):
        self.branches = branches

    def compute(self, *inputs):
        return tuple(branch.forward(*inputs) for branch in self.branches)

    def gradient(self, deltas):
        pairs = zip(self.branches, deltas, strict=True)
        back = [as_tuple(branch.backward(delta)) for branch, delta in pairs]
        sums = tuple(sum(copies) for copies in zip(*back, strict=True))
        return sums if len(sums) > 1 else sums[0]


class Concat(Module):
    """Put arrays side by side along the last axis."""

    def fits(self, *shapes):
        return len({shape[:-1] for shape in shapes}) == 1 and min(map(len, shapes)) > 0

    def compute(self, *inputs):
        widths = [x.shape[-1] for x in inputs]
        self.borders = np.cumsum(widths)[:-1]
        return np.concatenate(inputs, axis=-1)

    def gradient(self, delta):
        parts = tuple(np.split(delta, self.borders, axis=-1))
        return parts if len(parts) > 1 else parts[0]


class Adam:
    """Adam (Kingma and Ba 2015, algorithm 1).

    Parameters
    ----------
    parameters : iterable of Parameter
        Those that are not trainable are left alone.
    learning_rate : float
        May be changed between steps.
    betas : pair of float
    epsilon : float
    """

    def __init__(self, parameters, learning_rate=1e-3, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters, self.learning_rate = list(parameters), learning_rate
        self.betas, self.epsilon, self.steps = betas, epsilon, 0
        self.mean = [np.zeros_like(p.value) for p in self.parameters]
        self.square = [np.zeros_like(p.value) for p in self.parameters]

    def step(self):
        """Move every parameter against its gradient, in place, and clear the gradient."""
        self.steps += 1
        b1, b2 = self.betas
        warm = np.sqrt(1 - b2**self.steps)  # the averages start at 0
        size = self.learning_rate * warm / (1 - b1**self.steps)
        moments = zip(self.parameters, self.mean, self.square, strict=True)
        for parameter, mean, square in moments:
            if parameter.trainable:
                mean += (1 - b1) * (parameter.grad - mean)
                square += (1 - b2) * (parameter.grad**2 - square)
                parameter.value -= size * mean / (np.sqrt(square) + self.epsilon * warm)
            parameter.grad[...] = 0


def _by_differences(loss, array, step):
    """Return the gradient of ``loss()`` by the array, one entry after the other."""
    gradient = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + step
        above = loss()
        array[place] = kept - step
        gradient[place] = (above - loss()) / (2 * step)
        array[place] = kept
    return gradient


def gradient_error(module, *inputs, seed=0, step=1e-5):
    """Compare a module's backward pass with central finite differences.

    The loss is the output times fixed random numbers, summed.

    Parameters
    ----------
    module : Module
    *inputs : arrays
        Those of floats are differentiated; others (word numbers) are not.

    Returns
    -------
    dict
        Name of each input and parameter → the largest absolute difference, divided by
        the largest entry of the gradient where that is above 1.
    """
    module = copy.deepcopy(module)  # it is to leave no trace
    inputs = [np.array(x) for x in inputs]
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(size=np.shape(out)) for out in as_tuple(module.forward(*inputs))]
    delta = tuple(drawn) if len(drawn) > 1 else drawn[0]

    def loss():
        outputs = as_tuple(module.forward(*inputs))
        return sum(float((o * d).sum()) for o, d in zip(outputs, drawn, strict=True))

    named = module.parameters()
    for parameter in named.values():
        parameter.grad[...] = 0
    back = as_tuple(module.backward(delta))
    got = {f"input {i}": (x, g) for i, (x, g) in enumerate(zip(inputs, back, strict=False))}
    got = {name: pair for name, pair in got.items() if pair[0].dtype.kind == "f"}
    got |= {name: (p.value, p.grad.copy()) for name, p in named.items()}
    errors = {}
    for name, (array, gradient) in got.items():
        wanted = _by_differences(loss, array, step)
        size = max(1.0, float(np.abs(wanted).max(initial=0)))
        errors[name] = float(np.abs(gradient - wanted).max(initial=0)) / size
    return errors
