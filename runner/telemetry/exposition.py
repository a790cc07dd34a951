"""`exposition`: tallies as Prometheus reads them. The only room of prometheus-client.

There is no registry: whoever counts hands over what is his, so that two servers in one process do not collide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from runner.telemetry.tallies import Spread, Tally

Family: TypeAlias = Tally | Spread


def exposition(prefix: str, families: Sequence[Family], accept: str = "") -> tuple[bytes, str]:
    """The families, in their order, as text with its content type: OpenMetrics when the Accept header asks for it."""
    encode: Callable[[Collector], bytes]
    encode, content_type = choose_encoder(accept)
    return encode(_Told(prefix, families)), content_type


class _Told(Collector):
    """The families, as the library takes them."""

    def __init__(self, prefix: str, families: Sequence[Family]) -> None:
        self._prefix = prefix
        self._families = families

    def collect(self) -> Iterator[Any]:
        for family in self._families:
            name = f"{self._prefix}_{family.about.name}"
            yield _histogram(name, family) if isinstance(family, Spread) else _numbers(name, family)


def _numbers(name: str, tally: Tally) -> Any:
    about = tally.about
    kind = CounterMetricFamily if tally.kind == "counter" else GaugeMetricFamily
    family = kind(name, about.told, labels=(*about.fixed, *about.labels))
    for labels, value in tally.items():
        family.add_metric((*about.fixed.values(), *labels), value)
    return family


def _histogram(name: str, spread: Spread) -> Any:
    about = spread.about
    family = HistogramMetricFamily(name, about.told, labels=(*about.fixed, *about.labels))
    bounds = [floatToGoString(bound) for bound in (*spread.bounds, float("inf"))]  # type: ignore[no-untyped-call]
    for labels, buckets in spread.items():
        upto = list(zip(bounds, accumulate(buckets.counts), strict=True))
        family.add_metric((*about.fixed.values(), *labels), upto, buckets.sum)
    return family
