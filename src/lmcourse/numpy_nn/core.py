"""What every module has, how modules are put together, and how they are trained."""

import copy

import numpy as np


def as_tuple(x):
    """Return ``x`` if it is a tuple, else the tuple that holds only ``x``."""
    return x if isinstance(x, tuple) else (x,)


def shapes_of(x):
    """Return the shape of an array x, or a tuple of shapes for a tuple of arrays."""
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
        """Return whether inputs of these shapes can be computed; subclasses may say no.

        ``*shapes`` : for each input a tuple of int, or, for a tuple of arrays, a tuple of
        those.
        """
        return True

    def forward(self, *inputs):
        """Return the output for these inputs, arrays.

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

        ``delta`` : array of the output's shape, or a tuple of arrays. The gradients of the
        parameters are added to what they hold already. They belong to the same loss as
        ``delta``.

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
        """Yield (name, Parameter or Module) for everything that this module holds.

        The name is that of the attribute, such as "weight"; of those in a list or tuple
        "heads.0" and so on. What is inside of the modules is not among them.
        """
        for name, part in vars(self).items():
            many = isinstance(part, (list, tuple))
            several = part if many else [part]
            for i, each in enumerate(several):
                if isinstance(each, (Parameter, Module)):
                    yield (f"{name}.{i}" if many else name), each

    def parameters(self):
        """Return all parameters, those of inner modules too: a dict from name to Parameter.

        A name is the path to it, such as "blocks.modules.0.norm_1.weight". A Parameter that
        several modules hold is there once, under the first of its names.
        """
        by_name = {}
        for name, part in self.parts():
            inner = {"": part} if isinstance(part, Parameter) else part.parameters()
            for end, parameter in inner.items():
                if not any(parameter is other for other in by_name.values()):
                    by_name[f"{name}.{end}".rstrip(".")] = parameter
        return by_name

    def __repr__(self):
        """Return the class's name, with the shapes of the parameters it holds itself."""
        held = [(n, p.value.shape) for n, p in self.parts() if isinstance(p, Parameter)]
        inside = ", ".join(f"{name} {shape}" for name, shape in held)
        return type(self).__name__ + (f"({inside})" if held else "")


class Identity(Module):
    """A module that returns its input, such as the side of a residual connection."""

    def compute(self, x):
        """Return the input, x, of any shape, unchanged."""
        return x

    def gradient(self, delta):
        """Return the gradient of the output, ``delta``, as that of the input."""
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
        """Return the last module's output; each is given what the one before gave.

        ``*inputs`` : the arrays that the first module takes.
        """
        for module in self.modules:
            inputs = as_tuple(module.forward(*inputs))
        return inputs if len(inputs) > 1 else inputs[0]

    def gradient(self, delta):
        """Add to the modules' gradients; return that of the first one's inputs.

        ``delta`` : the gradient of the last one's output.
        """
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
        """Return the tuple of all branches' outputs for the same inputs."""
        return tuple(branch.forward(*inputs) for branch in self.branches)

    def gradient(self, deltas):
        """Add to the branches' gradients; return the sum of what they return.

        ``deltas`` has the gradient of each branch's output. A tuple is returned if there
        are several inputs.
        """
        pairs = zip(self.branches, deltas, strict=True)
        back = [as_tuple(branch.backward(delta)) for branch, delta in pairs]
        sums = tuple(sum(copies) for copies in zip(*back, strict=True))
        return sums if len(sums) > 1 else sums[0]


class Concat(Module):
    """Put arrays side by side along the last axis."""

    def fits(self, *shapes):
        """Return whether the shapes are the same but for their last axis, and all have one.

        ``*shapes`` : a tuple of int for each input.
        """
        return len({shape[:-1] for shape in shapes}) == 1 and min(map(len, shapes)) > 0

    def compute(self, *inputs):
        """Return the inputs (..., width) side by side, (..., sum of widths)."""
        widths = [x.shape[-1] for x in inputs]
        self.borders = np.cumsum(widths)[:-1]
        return np.concatenate(inputs, axis=-1)

    def gradient(self, delta):
        """Return the gradients of the inputs, a tuple; of a single input without one.

        ``delta`` : the gradient of the output, (..., sum of widths).
        """
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
        What each step keeps of the running mean of the gradients, and of that of their
        squares; from 0 to below 1.
    epsilon : float
        Keeps the step from being divided by zero.
    """

    def __init__(self, parameters, learning_rate=1e-3, betas=(0.9, 0.999), epsilon=1e-8):
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.betas = betas
        self.epsilon = epsilon
        self.steps = 0
        self.mean = [np.zeros_like(p.value) for p in self.parameters]
        self.square = [np.zeros_like(p.value) for p in self.parameters]

    def step(self):
        """Change every parameter by its gradient, in place, and clear the gradient.

        A parameter that is not trainable keeps its value; its gradient is cleared, too.
        """
        self.steps += 1
        b1, b2 = self.betas
        # The running means start at 0: these two make up for it.
        square_correction = np.sqrt(1 - b2**self.steps)
        size = self.learning_rate * square_correction / (1 - b1**self.steps)
        moments = zip(self.parameters, self.mean, self.square, strict=True)
        for parameter, mean, square in moments:
            if parameter.trainable:
                mean += (1 - b1) * (parameter.grad - mean)
                square += (1 - b2) * (parameter.grad**2 - square)
                epsilon = self.epsilon * square_correction
                parameter.value -= size * mean / (np.sqrt(square) + epsilon)
            parameter.grad[...] = 0


def _by_differences(loss, array, step):
    """Return the gradient of a loss by an array, one entry after the other.

    Parameters
    ----------
    loss : callable
        Without arguments, to a float.
    array : float array
        What the loss depends on; changed and brought back.
    step : float
        How far each entry is moved, up and down.

    Returns
    -------
    array of the same shape
    """
    gradient = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        value = array[index]
        array[index] = value + step
        above = loss()
        array[index] = value - step
        below = loss()
        array[index] = value
        gradient[index] = (above - below) / (2 * step)
    return gradient


def gradient_error(module, *inputs, seed=0, step=1e-5):
    """Compare a module's backward pass with central finite differences.

    The loss is the output times fixed random numbers, summed.

    Parameters
    ----------
    module : Module
    *inputs : arrays
        Those of floats are differentiated; others (word numbers) are not.
    seed : int
        Of the random numbers.
    step : float
        By which an entry is raised and lowered.

    Returns
    -------
    dict
        "input 0" and so on for the inputs, and the name of each parameter → the largest
        absolute difference of its two gradients, a float; it is divided by the largest
        entry of the gradient by differences, where that is above 1.
    """
    module = copy.deepcopy(module)  # the caller's is left as it is
    inputs = [np.array(x) for x in inputs]
    rng = np.random.default_rng(seed)
    outputs = as_tuple(module.forward(*inputs))
    factors = [rng.normal(size=np.shape(output)) for output in outputs]

    def loss():
        """Return the loss for the inputs and parameters as they are."""
        outputs = as_tuple(module.forward(*inputs))
        return sum(float((o * f).sum()) for o, f in zip(outputs, factors, strict=True))

    parameters = module.parameters()
    for parameter in parameters.values():
        parameter.grad[...] = 0
    delta = tuple(factors) if len(factors) > 1 else factors[0]
    input_gradients = as_tuple(module.backward(delta))
    pairs = {}  # name → array, its gradient by the backward pass
    for i, (x, gradient) in enumerate(zip(inputs, input_gradients, strict=False)):
        if x.dtype.kind == "f":
            pairs[f"input {i}"] = x, gradient
    for name, parameter in parameters.items():
        pairs[name] = parameter.value, parameter.grad.copy()
    errors = {}
    for name, (array, gradient) in pairs.items():
        expected = _by_differences(loss, array, step)
        size = max(1.0, float(np.abs(expected).max(initial=0)))
        errors[name] = float(np.abs(gradient - expected).max(initial=0)) / size
    return errors
