"""A gRPC client made from the .proto by grpcio-tools: it hears a question and says yes.

Arguments: the address, a token, and whether to use one stream both ways ("stream") or calls ("calls").
"""
import json
import queue
import sys
from datetime import datetime, timezone

import grpc
from aaep.v1 import aaep_pb2 as wire
from aaep.v1 import aaep_pb2_grpc

address, token, way = sys.argv[1:]
metadata = [("authorization", f"Bearer {token}")]
stub = aaep_pb2_grpc.AaepServiceStub(grpc.insecure_channel(address))


def message(value):
    return wire.AaepMessage(json=json.dumps(value).encode())


REQUEST = message({
    "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "python",
    "capabilities": {"supports_confirmation_reply": True, "coalesce_boundaries": ["none"]},
})


def accepted(value):
    assert value["type"] == "subscription.accepted", value
    return value["subscription_id"]


def yes(event, subscription):
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return message({
        "type": "confirmation.reply", "reply_token": event["reply_token"], "decision": "accept",
        "subscription_id": subscription, "timestamp": now.replace("+00:00", "Z"),
    })


manifest = json.loads(stub.GetManifest(wire.GetManifestRequest(), metadata=metadata).json)
assert manifest["aaep_versions_supported"], manifest

if way == "stream":
    outgoing = queue.SimpleQueue()
    outgoing.put(REQUEST)
    heard = stub.Subscribe(iter(outgoing.get, None), metadata=metadata)
    subscription = accepted(json.loads(next(heard).json))
    reply = outgoing.put
else:
    subscription = accepted(json.loads(stub.Open(REQUEST, metadata=metadata).json))
    heard = stub.Listen(wire.ListenRequest(subscription_id=subscription), metadata=metadata)

    def reply(said):
        answer = stub.Reply(said, metadata=metadata)
        assert answer.json == b"", answer

print("listening", flush=True)
for received in heard:
    event = json.loads(received.json)
    print(event["type"], flush=True)
    if event["type"] == "aaep:agent.awaiting.confirmation":
        reply(yes(event, subscription))
    if event["type"] == "aaep:agent.session.completed":
        break
heard.cancel()
