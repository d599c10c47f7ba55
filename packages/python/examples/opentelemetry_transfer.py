"""OpenTelemetry: python opentelemetry_transfer.py accept (or reject)

Spans as instrumented frameworks make them are announced; our requests are exported with OTLP, to a
collector on this machine that prints what came.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from aaep import Agent, Hub, NotApproved
from aaep.adapters.opentelemetry import Announcer, instrument


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        import gzip

        body = self.rfile.read(int(self.headers["content-length"]))
        body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
        if self.path.endswith("traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for span in (span for scope in resource.scope_spans for span in scope.spans):
                    known = {one.key: one.value.string_value for one in span.attributes}
                    if span.name.startswith("aaep."):
                        print("span", span.name, known["aaep.outcome"])
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                print("metrics", sorted(one.name for scope in resource.scope_metrics for one in scope.metrics))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def main(hub, collector):
    agent = Agent("traced-bank", hub.url)
    traces, announcer = TracerProvider(), Announcer(Agent("announcer", hub.url))
    traces.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{collector}/v1/traces")))
    traces.add_span_processor(announcer)
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{collector}/v1/metrics"), 3_600_000)
    meters = MeterProvider([reader])
    instrument(traces, meters)
    # As an instrumented framework makes them.
    tracer = traces.get_tracer("framework")
    with tracer.start_as_current_span("invoke_agent bank", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bank",
    }):
        with tracer.start_as_current_span("execute_tool balance", attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "balance",
        }):
            pass
    announcer.force_flush()
    try:
        with agent.session("Moving money.") as session:
            words = {"action": "Transfer 500 euros.", "consequence": "It cannot be called back."}
            with session.confirm("transfer", {"amount": "500.00"}, **words):
                print("moved")
    except NotApproved as no:
        print("not moved:", no.reason)
    meters.shutdown()
    traces.shutdown()


server = HTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
with Hub(answer=sys.argv[1]) as hub:
    main(hub, f"http://127.0.0.1:{server.server_port}")
    hub.wait_for("session.completed", 2)
    print([event["type"].removeprefix("aaep:agent.") for event in hub.events])
