"""The result of a metric."""


class MetricResult:
    """A value and the reason for it. This object compares, computes and prints like the value alone."""

    def __init__(self, value, reason=None, traces=None):
        self._value = value
        self.reason = reason
        self.traces = traces

    @property
    def value(self):
        """The value itself."""
        return self._value

    def __repr__(self):
        return repr(self._value)

    def __str__(self):
        return str(self._value)

    def __eq__(self, other):
        return self._value == getattr(other, "_value", other)

    def __lt__(self, other):
        return self._value < getattr(other, "_value", other)

    def __gt__(self, other):
        return self._value > getattr(other, "_value", other)

    def __hash__(self):
        return hash(self._value)

    def __float__(self):
        return float(self._value)

    def __int__(self):
        return int(self._value)

    def __bool__(self):
        return bool(self._value)

    def __add__(self, other):
        return self._value + getattr(other, "_value", other)

    def __radd__(self, other):
        return other + self._value

    def __mul__(self, other):
        return self._value * getattr(other, "_value", other)

    def __rmul__(self, other):
        return other * self._value

    def __len__(self):
        return len(self._value)

    def __iter__(self):
        return iter(self._value)

    def __getitem__(self, key):
        return self._value[key]
