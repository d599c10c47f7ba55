"""An agent and a person on a client that was generated from /openapi.json: the whole of chapter 6.

The agent asks; the person subscribes, hears, and answers as the words of each question say.
"""

import json
import sys
import threading
import traceback
from datetime import datetime, timezone

from hub_client import AuthenticatedClient
from hub_client.api.default import (
    delete_agent_requests_one,
    get_agent_requests_one,
    post_agent_requests_invoke,
    post_agent_sessions,
    post_agent_sessions_events,
    post_agent_sessions_requests,
    post_replies,
    post_subscriptions,
)
from hub_client.models import (
    AwaitingClarificationEvent,
    AwaitingConfirmationEvent,
    ClarificationReply,
    ConfirmationReply,
    Invocation,
    NewClarification,
    NewConfirmation,
    NewSession,
    NewSessionCancelled,
    NewSessionCompleted,
    NewToolCompleted,
    NewToolInvoked,
    SubscriptionRequest,
)

address, agent_token, person_token, agent_id = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=agent_token)
person = AuthenticatedClient(base_url=address, token=person_token)


def is_equal(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


# The person.

accepted = post_subscriptions.sync_detailed(
    client=person,
    body=SubscriptionRequest.from_dict(
        {
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "generated-client",
            "capabilities": {
                "languages": ["en"],
                "supports_confirmation_reply": True,
                "supports_clarification_reply": True,
            },
        }
    ),
)
is_equal(accepted.status_code, 201)
subscription = accepted.parsed.subscription_id
outcomes = {}


def reply(kind, **members):
    body = kind.from_dict(
        {
            "subscription_id": subscription,
            "timestamp": datetime.now(timezone.utc).isoformat(),
            **members,
        }
    )
    answer = post_replies.sync_detailed(client=person, body=body)
    # Whatever becomes of it, it looks the same (6.3.4).
    is_equal((answer.status_code, answer.content), (204, b""))


def decide(token, decision, **more):
    reply(
        ConfirmationReply,
        type="confirmation.reply",
        reply_token=token,
        decision=decision,
        **more,
    )


def answer(token, response):
    reply(ClarificationReply, type="clarification.reply", reply_token=token, response=response)


def hear(data):
    event = json.loads(data)
    match event["type"]:
        case "aaep:agent.awaiting.confirmation":
            asked = AwaitingConfirmationEvent.from_dict(event)
            words, token = asked.action, asked.reply_token
            if words.startswith("Accept"):
                # A token that nobody has, and a second thought: neither counts.
                decide("rpl_" + "0" * 32, "reject")
                decide(token, "accept", decided_by="Ann", decision_rationale="It is due.")
                decide(token, "reject")
            elif words.startswith("Reject"):
                decide(token, "reject")
            elif words.startswith("Change"):
                decide(token, "accept", modified_action={"to": "Bob"})
        case "aaep:agent.awaiting.clarification":
            asked = AwaitingClarificationEvent.from_dict(event)
            if asked.question.startswith("How many"):
                answer(asked.reply_token, "many")
                answer(asked.reply_token, 3)
            elif asked.question.startswith("Which"):
                answer(asked.reply_token, "blue")
        case "aaep:agent.state.changed":
            resolved = event.get("extensions", {}).get("outcome")
            if resolved:
                outcomes[resolved["request_event_id"]] = resolved["outcome"]


is_listening = threading.Event()
is_over = threading.Event()
failed = []


def listen():
    try:
        http = person.get_httpx_client()
        place = {"subscription_id": subscription}
        with http.stream("GET", "/aaep/v1/events", params=place, timeout=None) as stream:
            is_listening.set()
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    hear(line.removeprefix("data:"))
                    if '"aaep:agent.session.completed"' in line:
                        return
    except Exception as error:
        traceback.print_exc()
        failed.append(error)
    finally:
        is_listening.set()
        is_over.set()


threading.Thread(target=listen, daemon=True).start()
is_listening.wait()


# The agent.


def open_session():
    opened = post_agent_sessions.sync_detailed(
        client=client,
        body=NewSession.from_dict({"producer": {"agent_id": agent_id}, "summary_normal": "Paying."}),
    )
    is_equal(opened.status_code, 201)
    return opened.parsed.session_id


def emit(session, body):
    return post_agent_sessions_events.sync_detailed(session_id=session, client=client, body=body)


def ask(action, **more):
    return send(
        NewConfirmation.from_dict(
            {
                "kind": "confirmation",
                "tool": "transfer",
                "arguments": {"to": "Ann", "for": action},
                "action": action,
                "consequence": "The money is gone.",
                "risk_level": "high",
                "irreversible": True,
                "timeout_seconds": 300,
                "default_decision": "reject",
                **more,
            }
        )
    )


def clarify(question, **more):
    return send(
        NewClarification.from_dict(
            {"kind": "clarification", "question": question, "timeout_seconds": 60, **more}
        )
    )


def send(body, status=201):
    sent = post_agent_sessions_requests.sync_detailed(session_id=session, client=client, body=body)
    is_equal(sent.status_code, status)
    return sent.parsed


def outcome(request):
    found = get_agent_requests_one.sync_detailed(
        request_id=request.request_id, client=client, wait=30
    )
    is_equal(found.status_code, 200)
    return found.parsed


def invoke(request, **arguments):
    body = Invocation.from_dict(arguments)
    return post_agent_requests_invoke.sync_detailed(
        request_id=request.request_id, client=client, body=body
    )


def is_not_run(request):
    """Neither spent nor announced as if it had been (6.1)."""
    is_equal(invoke(request).status_code, 409)
    said = {"type": "aaep:agent.tool.invoked", "tool": "transfer", "summary_normal": "Sending."}
    is_equal(emit(session, NewToolInvoked.from_dict(said)).status_code, 409)


session = open_session()

# Nothing runs while the question waits, nor after a withdrawal, a no, another action or a silence. The
# same is asked once.
waiting = ask("Wait for me")
is_not_run(waiting)
again = NewConfirmation.from_dict(
    {
        "kind": "confirmation",
        "tool": "transfer",
        "arguments": {"for": "Wait for me", "to": "Ann"},
        "action": "In other words",
        "consequence": "The money is gone.",
        "risk_level": "high",
        "irreversible": True,
        "timeout_seconds": 300,
        "default_decision": "reject",
    }
)
is_equal(send(again, status=200).request_id, waiting.request_id)
withdrawn = delete_agent_requests_one.sync_detailed(request_id=waiting.request_id, client=client)
is_equal(withdrawn.status_code, 204)
ended = {waiting.event_id: "cancelled"}
is_equal(outcome(waiting).status, "cancelled")
is_not_run(waiting)

for action, status, told, more in [
    ("Reject this", "rejected", "rejected", {}),
    ("Change this", "rejected", "rejected", {}),
    ("Say nothing", "timed_out", "timed_out", {"timeout_seconds": 1}),
]:
    request = ask(action, **more)
    is_equal(outcome(request).status, status)
    is_not_run(request)
    ended[request.event_id] = told

# Silence is no yes to what cannot be undone, and may be one to what can.
refused = post_agent_sessions_requests.sync_detailed(
    session_id=session,
    client=client,
    body=NewConfirmation.from_dict({**again.to_dict(), "default_decision": "accept"}),
)
is_equal(refused.status_code, 400)
light = ask(
    "Do it unless I speak",
    risk_level="low",
    irreversible=False,
    reversibility="reversible",
    default_decision="accept",
    timeout_seconds=1,
)
is_equal(outcome(light).status, "accepted")
ended[light.event_id] = "timed_out"
light_call = invoke(light)
is_equal(light_call.status_code, 200)

# A yes is for these arguments, once.
request = ask("Accept this")
decided = outcome(request)
is_equal(decided.status, "accepted")
is_equal(decided.reply.decided_by, "Ann")
is_equal(decided.reply.decision_rationale, "It is due.")
ended[request.event_id] = "accepted"
is_equal(invoke(request, arguments={"to": "Eve"}).status_code, 409)
granted = invoke(request)
is_equal(granted.status_code, 200)
is_equal(granted.parsed.arguments, {"to": "Ann", "for": "Accept this"})
is_equal(invoke(request).status_code, 409)

for call in (light_call, granted):
    done = NewToolCompleted.from_dict(
        {
            "type": "aaep:agent.tool.completed",
            "tool": "transfer",
            "tool_call_id": call.parsed.tool_call_id,
            "status": "success",
            "summary_normal": "Sent.",
        }
    )
    is_equal(emit(session, done).status_code, 201)
is_equal(outcome(request).status, "completed")

# Answers are of the kind that was asked for; without one it goes on with the default, or unanswered.
is_equal(outcome(clarify("Which colour?")).response, "blue")
is_equal(outcome(clarify("How many?", accepted_response_kinds=["numeric"])).response, 3)
silent = {"timeout_seconds": 1}
is_equal(outcome(clarify("And then?", default_response="Stop.", **silent)).response, "Stop.")
is_equal(outcome(clarify("Anything else?", **silent)).status, "unanswered")

# The end of a session ends what waits in it.
first, session = session, open_session()
left = ask("Wait for ever")
stopped = {
    "type": "aaep:agent.session.cancelled",
    "cancelled_by": "producer",
    "summary_normal": "Not needed any more.",
}
is_equal(emit(session, NewSessionCancelled.from_dict(stopped)).status_code, 201)
is_equal(outcome(left).status, "cancelled")
is_equal(invoke(left).status_code, 404)

over = {"type": "aaep:agent.session.completed", "summary_normal": "Done."}
is_equal(emit(first, NewSessionCompleted.from_dict(over)).status_code, 201)
assert is_over.wait(60), "the person did not hear the end"
if failed:
    raise failed[0]
# Everybody was told what became of every question (6.7.2).
is_equal({asked: outcomes.get(asked) for asked in ended}, ended)
